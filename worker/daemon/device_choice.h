// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "mtmc/v1/device.pb.h"

namespace mtmc::worker {

// One device of this host, by backend and index. A value.
struct DeviceChoice {
  v1::Dialect backend = v1::DIALECT_OPENCL;
  int index = 0;

  bool is_cuda() const { return backend == v1::DIALECT_CUDA; }

  // `cuda-0`: fit for names of files and workers.
  std::string text() const;

  // What PyTorch calls it: `cuda:0`, or `cpu` for every OpenCL device, where
  // tensors are shared through host memory.
  std::string torch_name() const;
};

// Reads `opencl:N`, `cuda:N` or `auto`, which is the first CUDA device if the
// host has an NVIDIA driver and the first OpenCL device otherwise.
absl::StatusOr<DeviceChoice> ParseDeviceChoice(const std::string& text, bool has_nvidia_device);

}  // namespace mtmc::worker
