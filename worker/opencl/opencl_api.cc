// SPDX-License-Identifier: Apache-2.0
#include "worker/opencl/opencl_api.h"

#include <dlfcn.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace mtmc::worker {
namespace {

absl::StatusOr<OpenClApi> Load() {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return absl::UnavailableError(
        absl::StrCat("there is no OpenCL loader (", dlerror(),
                     "); install ocl-icd-libopencl1 and, for CPUs, pocl-opencl-icd"));
  }
  OpenClApi api;
#define MTMC_LOAD(name)                                                   \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name)); \
  if (!api.name) return absl::UnavailableError("libOpenCL.so.1 has no function " #name);
  MTMC_OPENCL_FUNCTIONS(MTMC_LOAD)
#undef MTMC_LOAD
  return api;
}

const char* FindErrorName(cl_int error) {
  switch (error) {
#define MTMC_NAME(name) \
  case name:            \
    return #name;
    MTMC_NAME(CL_DEVICE_NOT_FOUND)
    MTMC_NAME(CL_DEVICE_NOT_AVAILABLE)
    MTMC_NAME(CL_COMPILER_NOT_AVAILABLE)
    MTMC_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    MTMC_NAME(CL_OUT_OF_RESOURCES)
    MTMC_NAME(CL_OUT_OF_HOST_MEMORY)
    MTMC_NAME(CL_BUILD_PROGRAM_FAILURE)
    MTMC_NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    MTMC_NAME(CL_INVALID_VALUE)
    MTMC_NAME(CL_INVALID_DEVICE)
    MTMC_NAME(CL_INVALID_BINARY)
    MTMC_NAME(CL_INVALID_BUILD_OPTIONS)
    MTMC_NAME(CL_INVALID_PROGRAM)
    MTMC_NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    MTMC_NAME(CL_INVALID_KERNEL_NAME)
    MTMC_NAME(CL_INVALID_KERNEL)
    MTMC_NAME(CL_INVALID_ARG_INDEX)
    MTMC_NAME(CL_INVALID_ARG_VALUE)
    MTMC_NAME(CL_INVALID_ARG_SIZE)
    MTMC_NAME(CL_INVALID_KERNEL_ARGS)
    MTMC_NAME(CL_INVALID_WORK_DIMENSION)
    MTMC_NAME(CL_INVALID_WORK_GROUP_SIZE)
    MTMC_NAME(CL_INVALID_WORK_ITEM_SIZE)
    MTMC_NAME(CL_INVALID_OPERATION)
    MTMC_NAME(CL_INVALID_BUFFER_SIZE)
    MTMC_NAME(CL_INVALID_GLOBAL_WORK_SIZE)
#undef MTMC_NAME
    default:
      return nullptr;
  }
}

}  // namespace

absl::StatusOr<const OpenClApi*> OpenOpenCl() {
  // Never closed: drivers run threads of their own.
  static const absl::StatusOr<OpenClApi>& api = *new absl::StatusOr<OpenClApi>(Load());
  if (!api.ok()) return api.status();
  return &*api;
}

std::string OpenClErrorName(cl_int error) {
  const char* name = FindErrorName(error);
  return absl::StrCat(name ? name : "OpenCL error", " (", error, ")");
}

Failure OpenClFailure(cl_int error, const std::string& call) {
  const bool is_memory = error == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
                         error == CL_OUT_OF_HOST_MEMORY || error == CL_INVALID_BUFFER_SIZE;
  return {.kind = is_memory ? Failure::Kind::kOutOfMemory : Failure::Kind::kLaunch,
          .message = absl::StrCat(call, " failed with ", OpenClErrorName(error)),
          .is_context_lost = error == CL_DEVICE_NOT_AVAILABLE};
}

absl::StatusOr<cl_device_id> FindOpenClDevice(const OpenClApi& api, int index) {
  cl_uint num_platforms = 0;
  if (api.clGetPlatformIDs(0, nullptr, &num_platforms) != CL_SUCCESS) num_platforms = 0;
  std::vector<cl_platform_id> platforms(num_platforms);
  if (num_platforms > 0) api.clGetPlatformIDs(num_platforms, platforms.data(), nullptr);
  std::vector<cl_device_id> devices;
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS)
      continue;
    const size_t first = devices.size();
    devices.resize(first + count);
    api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data() + first, nullptr);
  }
  if (index < 0 || static_cast<size_t>(index) >= devices.size()) {
    return absl::NotFoundError(absl::StrCat("there is no OpenCL device ", index, " (",
                                            num_platforms, " platforms, ", devices.size(),
                                            " devices); for CPUs install pocl-opencl-icd"));
  }
  return devices[static_cast<size_t>(index)];
}

}  // namespace mtmc::worker
