// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <random>
#include <string>

#include "absl/status/statusor.h"
#include "worker/cuda/cuda_context.h"

namespace mtmc::worker {

// A kernel of our own of a few microseconds, which the process of every side of a
// comparison times: on an H200 one process takes up to 0.2 us longer than another for
// any kernel, cold and as long as it lives. Its data lies at another place each time, so
// that the place adds nothing to the mean. The baselines' process has the same one
// (`mtmc_reference/yardstick.py`).
class CudaYardstick {
 public:
  // The kernel's source, for the compiler that the caller has.
  static const char* Source();

  // `binary` is Source(), alone or with more, compiled for the context's device.
  static absl::StatusOr<std::unique_ptr<CudaYardstick>> Create(
      std::shared_ptr<const CudaContext> context, const std::string& binary,
      const DeviceFacts& facts);

  ~CudaYardstick();
  CudaYardstick(const CudaYardstick&) = delete;
  CudaYardstick& operator=(const CudaYardstick&) = delete;

  // Whether there is memory for its data, which the first call takes.
  bool Reserve();

  // REQUIRES: Reserve() has said so.
  MaybeFailure Enqueue();

 private:
  CudaYardstick(std::shared_ptr<const CudaContext> context, size_t arena_bytes);

  const std::shared_ptr<const CudaContext> context_;
  const size_t arena_bytes_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  CUdeviceptr arena_ = 0;
  std::mt19937 random_;
};

}  // namespace mtmc::worker
