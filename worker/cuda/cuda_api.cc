// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/cuda_api.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

// Two steps, so that the versioned name is what becomes a string.
#define MTMC_STRING(name) MTMC_STRING_(name)
#define MTMC_STRING_(name) #name

namespace mtmc::worker {
namespace {

absl::StatusOr<CudaApi> Load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return absl::UnavailableError(absl::StrCat("there is no CUDA driver (", dlerror(), ")"));
  }
  CudaApi api;
#define MTMC_LOAD(name)                                                                        \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, MTMC_STRING(name)));          \
  if (!api.name) {                                                                             \
    return absl::UnavailableError("the CUDA driver is too old: it has no " MTMC_STRING(name)); \
  }
  MTMC_CUDA_FUNCTIONS(MTMC_LOAD)
#undef MTMC_LOAD
  const CUresult error = api.cuInit(0);
  if (error != CUDA_SUCCESS) return CudaStatus(api, error, "cuInit");
  return api;
}

std::string Describe(const CudaApi& api, CUresult error, const std::string& call) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.cuGetErrorName(error, &name);
  api.cuGetErrorString(error, &text);
  return absl::StrCat(call, " failed with ", name ? name : "an unknown error", " (",
                      static_cast<int>(error), "): ", text ? text : "");
}

}  // namespace

absl::StatusOr<const CudaApi*> OpenCuda() {
  // Never closed: the driver runs threads of its own.
  static const absl::StatusOr<CudaApi>& api = *new absl::StatusOr<CudaApi>(Load());
  if (!api.ok()) return api.status();
  return &*api;
}

bool IsSticky(CUresult error) {
  switch (error) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

Failure CudaFailure(const CudaApi& api, CUresult error, const std::string& call) {
  Failure::Kind kind = Failure::Kind::kLaunch;
  if (error == CUDA_ERROR_OUT_OF_MEMORY) kind = Failure::Kind::kOutOfMemory;
  if (error == CUDA_ERROR_ILLEGAL_ADDRESS) kind = Failure::Kind::kOutOfBounds;
  return {.kind = kind, .message = Describe(api, error, call), .is_context_lost = IsSticky(error)};
}

absl::Status CudaStatus(const CudaApi& api, CUresult error, const std::string& call) {
  if (error == CUDA_SUCCESS) return absl::OkStatus();
  if (error == CUDA_ERROR_OUT_OF_MEMORY) {
    return absl::ResourceExhaustedError(Describe(api, error, call));
  }
  return absl::UnavailableError(Describe(api, error, call));
}

}  // namespace mtmc::worker
