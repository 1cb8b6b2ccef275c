// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/failure.h"

// Every function of the driver that is used. The names are macros of cuda.h that
// stand for the version a build wants, and so are the members below.
#define MTMC_CUDA_FUNCTIONS(F)   \
  F(cuInit)                      \
  F(cuGetErrorName)              \
  F(cuGetErrorString)            \
  F(cuDriverGetVersion)          \
  F(cuDeviceGet)                 \
  F(cuDeviceGetCount)            \
  F(cuDeviceGetName)             \
  F(cuDeviceGetUuid)             \
  F(cuDeviceTotalMem)            \
  F(cuDeviceGetAttribute)        \
  F(cuDevicePrimaryCtxRetain)    \
  F(cuDevicePrimaryCtxRelease)   \
  F(cuCtxSetCurrent)             \
  F(cuCtxSetLimit)               \
  F(cuCtxSynchronize)            \
  F(cuCtxResetPersistingL2Cache) \
  F(cuStreamCreate)              \
  F(cuStreamDestroy)             \
  F(cuStreamSynchronize)         \
  F(cuStreamBeginCapture)        \
  F(cuStreamEndCapture)          \
  F(cuGraphInstantiate)          \
  F(cuGraphLaunch)               \
  F(cuGraphDestroy)              \
  F(cuGraphExecDestroy)          \
  F(cuEventCreate)               \
  F(cuEventDestroy)              \
  F(cuEventRecord)               \
  F(cuEventQuery)                \
  F(cuEventElapsedTime)          \
  F(cuMemAlloc)                  \
  F(cuMemFree)                   \
  F(cuMemAllocHost)              \
  F(cuMemFreeHost)               \
  F(cuMemsetD8Async)             \
  F(cuMemsetD32Async)            \
  F(cuMemcpyHtoDAsync)           \
  F(cuMemcpyDtoHAsync)           \
  F(cuMemcpyDtoDAsync)           \
  F(cuIpcGetMemHandle)           \
  F(cuIpcOpenMemHandle)          \
  F(cuIpcCloseMemHandle)         \
  F(cuModuleLoadData)            \
  F(cuModuleUnload)              \
  F(cuModuleGetFunction)         \
  F(cuFuncGetAttribute)          \
  F(cuFuncSetAttribute)          \
  F(cuLaunchKernel)

namespace mtmc::worker {

// The functions of the CUDA driver (libcuda.so.1), opened at run time so that
// one build serves hosts with and without a GPU.
struct CudaApi {
#define MTMC_DECLARE(name) decltype(&::name) name = nullptr;
  MTMC_CUDA_FUNCTIONS(MTMC_DECLARE)
#undef MTMC_DECLARE
};

// The driver's functions, opened and initialized once per process. UNAVAILABLE
// without a driver or a device.
absl::StatusOr<const CudaApi*> OpenCuda();

// Whether the context is broken after `error`, so that every later call of the
// process fails too.
bool IsSticky(CUresult error);

// What a failed call means while a candidate runs, with the name of the call,
// the symbolic error and its text.
Failure CudaFailure(const CudaApi& api, CUresult error, const std::string& call);

// The same as an error of the environment; OK when `error` is success.
absl::Status CudaStatus(const CudaApi& api, CUresult error, const std::string& call);

}  // namespace mtmc::worker
