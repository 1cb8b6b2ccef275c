// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "worker/cuda/cuda_context.h"
#include "worker/device/random_fill.h"

namespace mtmc::worker {

// The kernel that does on the GPU what a RandomFill says.
class CudaFill {
 public:
  // The kernel's source, for the compiler that the caller has.
  static std::string Source();

  // `binary` is Source(), alone or with more, compiled for the context's device.
  static absl::StatusOr<std::unique_ptr<CudaFill>> Create(
      std::shared_ptr<const CudaContext> context, const std::string& binary);

  ~CudaFill();
  CudaFill(const CudaFill&) = delete;
  CudaFill& operator=(const CudaFill&) = delete;

  // One fill, and the eight bytes on the device to which the number of wrong words is added.
  struct Task {
    RandomFill fill;
    CUdeviceptr counter = 0;
  };

  // One launch for each some dozens of them.
  CUresult Enqueue(std::span<const Task> tasks) const;

 private:
  explicit CudaFill(std::shared_ptr<const CudaContext> context);

  CUresult EnqueueBatch(std::span<const Task> tasks) const;

  const std::shared_ptr<const CudaContext> context_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
};

}  // namespace mtmc::worker
