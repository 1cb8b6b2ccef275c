// SPDX-License-Identifier: Apache-2.0
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS

#include <CL/cl.h>

#include <string>

#include "absl/status/statusor.h"
#include "worker/device/failure.h"

// Every OpenCL function that is used; all are of version 1.2.
#define MTMC_OPENCL_FUNCTIONS(F) \
  F(clGetPlatformIDs)            \
  F(clGetPlatformInfo)           \
  F(clGetDeviceIDs)              \
  F(clGetDeviceInfo)             \
  F(clCreateContext)             \
  F(clReleaseContext)            \
  F(clCreateCommandQueue)        \
  F(clReleaseCommandQueue)       \
  F(clCreateBuffer)              \
  F(clCreateSubBuffer)           \
  F(clReleaseMemObject)          \
  F(clCreateProgramWithSource)   \
  F(clCreateProgramWithBinary)   \
  F(clBuildProgram)              \
  F(clGetProgramBuildInfo)       \
  F(clGetProgramInfo)            \
  F(clReleaseProgram)            \
  F(clCreateKernel)              \
  F(clReleaseKernel)             \
  F(clSetKernelArg)              \
  F(clGetKernelWorkGroupInfo)    \
  F(clEnqueueNDRangeKernel)      \
  F(clEnqueueReadBuffer)         \
  F(clEnqueueWriteBuffer)        \
  F(clEnqueueFillBuffer)         \
  F(clEnqueueCopyBuffer)         \
  F(clFinish)

namespace mtmc::worker {

// The functions of the OpenCL loader (libOpenCL.so.1), opened at run time so
// that one build serves hosts with and without it. Member names are OpenCL's.
struct OpenClApi {
#define MTMC_DECLARE(name) decltype(&::name) name = nullptr;
  MTMC_OPENCL_FUNCTIONS(MTMC_DECLARE)
#undef MTMC_DECLARE
};

// The loader's functions, opened once per process. UNAVAILABLE with what to
// install when there is no loader.
absl::StatusOr<const OpenClApi*> OpenOpenCl();

// Such as `CL_INVALID_WORK_GROUP_SIZE (-54)`.
std::string OpenClErrorName(cl_int error);

// What a failed call of a candidate's run means: out of memory, or a launch
// that the device refused. The context survives unless the device is lost.
Failure OpenClFailure(cl_int error, const std::string& call);

// The device with this index among those of all platforms, in their order.
// NOT_FOUND when there are fewer.
absl::StatusOr<cl_device_id> FindOpenClDevice(const OpenClApi& api, int index);

}  // namespace mtmc::worker
