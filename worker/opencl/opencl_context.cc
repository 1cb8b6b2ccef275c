// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/opencl_context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/host_name.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// Tells hosts with the same processor apart.
std::string HostIdentity() {
  auto id = base::ReadFile("/etc/machine-id", 64);
  if (id.ok() && !id->empty()) return *id;
  return base::HostName();
}

}  // namespace

OpenClContext::OpenClContext(const OpenClApi& api, cl_device_id device)
    : api_(api), device_(device) {}

OpenClContext::~OpenClContext() {
  if (queue_) api_.clReleaseCommandQueue(queue_);
  if (context_) api_.clReleaseContext(context_);
}

absl::StatusOr<std::shared_ptr<const OpenClContext>> OpenClContext::Create(int device_index) {
  MTMC_ASSIGN_OR_RETURN(const OpenClApi* api, OpenOpenCl());
  MTMC_ASSIGN_OR_RETURN(cl_device_id device, FindOpenClDevice(*api, device_index));
  std::shared_ptr<OpenClContext> context(new OpenClContext(*api, device));
  cl_int error = CL_SUCCESS;
  context->context_ = api->clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) {
    return absl::UnavailableError(
        absl::StrCat("clCreateContext failed with ", OpenClErrorName(error)));
  }
  context->queue_ = api->clCreateCommandQueue(context->context_, device, 0, &error);
  if (error != CL_SUCCESS) {
    return absl::UnavailableError(
        absl::StrCat("clCreateCommandQueue failed with ", OpenClErrorName(error)));
  }
  context->is_host_ = context->ReadNumber<cl_device_type>(CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
  return context;
}

std::string OpenClContext::ReadText(cl_device_info name) const {
  size_t size = 0;
  if (api_.clGetDeviceInfo(device_, name, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  api_.clGetDeviceInfo(device_, name, size, text.data(), nullptr);
  // The text ends with a zero byte.
  text.resize(text.find('\0') == std::string::npos ? size : text.find('\0'));
  return text;
}

template <typename T>
T OpenClContext::ReadNumber(cl_device_info name) const {
  T value{};
  api_.clGetDeviceInfo(device_, name, sizeof value, &value, nullptr);
  return value;
}

DeviceFacts OpenClContext::ReadFacts() const {
  DeviceFacts facts;
  facts.product = ReadText(CL_DEVICE_NAME);
  facts.uuid =
      base::Sha256(absl::StrCat(facts.product, "\n", HostIdentity())).sha256_hex.substr(0, 32);
  facts.dialects = {kernel::Dialect::kOpenCl};
  facts.compute_units = static_cast<int>(ReadNumber<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS));
  facts.memory_bytes = static_cast<int64_t>(ReadNumber<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE));
  facts.cache_bytes = static_cast<int64_t>(ReadNumber<cl_ulong>(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE));
  // PoCL reports some level of the cache; the flush needs the last one.
  if (is_host_)
    facts.cache_bytes = std::max<int64_t>(facts.cache_bytes, sysconf(_SC_LEVEL3_CACHE_SIZE));
  facts.shared_memory_per_block_bytes =
      static_cast<int64_t>(ReadNumber<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE));
  facts.max_threads_per_block = static_cast<int>(ReadNumber<size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE));
  facts.warp_size = 1;
  facts.vector_bytes =
      std::max(16, static_cast<int>(ReadNumber<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT)) * 4);
  facts.driver_version = ReadText(CL_DRIVER_VERSION);
  facts.toolchain_version = ReadText(CL_DEVICE_VERSION);
  return facts;
}

}  // namespace mtmc::worker
