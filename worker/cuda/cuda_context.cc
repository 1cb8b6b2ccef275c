// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_context.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

// `GPU-` and the bytes as nvidia-smi and NVML write them.
std::string ToText(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

CudaContext::CudaContext(const CudaApi& api, int device_index)
    : api_(api), device_index_(device_index), peers_(std::make_unique<PeerMappings>(api)) {}

CudaContext::~CudaContext() {
  peers_.reset();
  if (stream_) api_.cuStreamDestroy(stream_);
  if (context_) api_.cuDevicePrimaryCtxRelease(device_);
}

absl::StatusOr<std::shared_ptr<const CudaContext>> CudaContext::Create(int device_index) {
  MTMC_ASSIGN_OR_RETURN(const CudaApi* api, OpenCuda());
  int count = 0;
  MTMC_RETURN_IF_ERROR(CudaStatus(*api, api->cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (device_index < 0 || device_index >= count) {
    return absl::NotFoundError(
        absl::StrCat("there is no CUDA device ", device_index, " (", count, " devices)"));
  }
  std::shared_ptr<CudaContext> context(new CudaContext(*api, device_index));
  MTMC_RETURN_IF_ERROR(
      CudaStatus(*api, api->cuDeviceGet(&context->device_, device_index), "cuDeviceGet"));
  MTMC_RETURN_IF_ERROR(
      CudaStatus(*api, api->cuDevicePrimaryCtxRetain(&context->context_, context->device_),
                 "cuDevicePrimaryCtxRetain"));
  MTMC_RETURN_IF_ERROR(
      CudaStatus(*api, api->cuCtxSetCurrent(context->context_), "cuCtxSetCurrent"));
  // Not ordered with the default stream, which captures could not cross.
  MTMC_RETURN_IF_ERROR(CudaStatus(
      *api, api->cuStreamCreate(&context->stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  return context;
}

int CudaContext::ReadAttribute(CUdevice_attribute attribute) const {
  int value = 0;
  api_.cuDeviceGetAttribute(&value, attribute, device_);
  return value;
}

absl::StatusOr<DeviceFacts> CudaContext::ReadFacts() const {
  DeviceFacts facts;
  std::array<char, 256> name{};
  MTMC_RETURN_IF_ERROR(CudaStatus(
      api_, api_.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device_),
      "cuDeviceGetName"));
  facts.product = name.data();
  CUuuid uuid{};
  MTMC_RETURN_IF_ERROR(CudaStatus(api_, api_.cuDeviceGetUuid(&uuid, device_), "cuDeviceGetUuid"));
  facts.uuid = ToText(uuid);
  size_t memory = 0;
  MTMC_RETURN_IF_ERROR(
      CudaStatus(api_, api_.cuDeviceTotalMem(&memory, device_), "cuDeviceTotalMem"));
  facts.memory_bytes = static_cast<int64_t>(memory);
  facts.dialects = {kernel::Dialect::kCuda};
  facts.compute_capability = 10 * ReadAttribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                             ReadAttribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.compute_units = ReadAttribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.cache_bytes = ReadAttribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  facts.shared_memory_per_block_bytes =
      ReadAttribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  facts.max_threads_per_block = ReadAttribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  facts.warp_size = ReadAttribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  facts.vector_bytes = 16;
  int version = 0;
  api_.cuDriverGetVersion(&version);
  facts.driver_version = absl::StrCat("CUDA ", version / 1000, ".", version % 1000 / 10);
  return facts;
}

MultiprocessorLimits CudaContext::ReadLimits() const {
  return {.warp_size = ReadAttribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
          .max_threads = ReadAttribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
          .max_blocks = ReadAttribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
          .registers = ReadAttribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
          .shared_bytes = ReadAttribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
          .reserved_shared_bytes_per_block =
              ReadAttribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)};
}

absl::Status CudaContext::LoadKernels(const std::string& binary,
                                      std::initializer_list<NamedKernel> kernels,
                                      CUmodule& module) const {
  MTMC_RETURN_IF_ERROR(
      CudaStatus(api_, api_.cuModuleLoadData(&module, binary.data()), "cuModuleLoadData"));
  for (const NamedKernel& kernel : kernels) {
    MTMC_RETURN_IF_ERROR(CudaStatus(api_,
                                    api_.cuModuleGetFunction(kernel.function, module, kernel.name),
                                    absl::StrCat("cuModuleGetFunction of ", kernel.name)));
  }
  return absl::OkStatus();
}

MaybeFailure CudaContext::Synchronize() const {
  const CUresult error = api_.cuStreamSynchronize(stream_);
  if (error != CUDA_SUCCESS) return CudaFailure(api_, error, "cuStreamSynchronize");
  return std::nullopt;
}

}  // namespace mtmc::worker
