// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "worker/cuda/cuda_context.h"
#include "worker/device/failure.h"

namespace mtmc::worker {

// The memory of a GPU's buffers. What is given back stays for the next request of its
// size, overwritten, up to `most_kept_bytes` in all: the driver takes 0.1 to 0.3 ms for
// each allocation, and a candidate asks for what the one before had. Thread-compatible.
class CudaMemory {
 public:
  CudaMemory(std::shared_ptr<const CudaContext> context, int64_t most_kept_bytes);
  ~CudaMemory();
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  // An allocation of its own, whose content is arbitrary. kOutOfMemory.
  Outcome<CUdeviceptr> Allocate(int64_t bytes);

  // Takes back what Allocate gave, after all work that was enqueued on it.
  void Free(CUdeviceptr address, int64_t bytes);

 private:
  void ReturnAll();

  const std::shared_ptr<const CudaContext> context_;
  const int64_t most_kept_bytes_;
  int64_t kept_bytes_ = 0;
  // By size.
  std::multimap<int64_t, CUdeviceptr> kept_;
};

}  // namespace mtmc::worker
