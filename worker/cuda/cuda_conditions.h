// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/cuda/cuda_context.h"

namespace mtmc::worker {

// The state of the GPU in which a sample is taken, made by kernels of our own:
// nothing of the last execution on the chip, or a part of the chip taken.
class CudaConditions {
 public:
  // The kernels' source, for the compiler that the caller has.
  static const char* Source();

  // `binary` is Source(), alone or with more, compiled for the context's device.
  static absl::StatusOr<std::unique_ptr<CudaConditions>> Create(
      std::shared_ptr<const CudaContext> context, const std::string& binary,
      const DeviceFacts& facts);

  ~CudaConditions();
  CudaConditions(const CudaConditions&) = delete;
  CudaConditions& operator=(const CudaConditions&) = delete;

  // Overwrites all shared memory and the first 512 bytes of local memory of every
  // thread that can be resident, and with them L1 and L2. Enqueued.
  MaybeFailure Scrub();

  // Makes lines that a kernel asked to stay in L2 ordinary ones, which a flush
  // evicts. REQUIRES: the device is idle.
  void ReleasePersistingLines() const;

  // Starts a kernel on another stream that holds half of the shared memory and
  // thread slots of some multiprocessors, another number each time, and ends
  // after `seconds`.
  MaybeFailure StartLoad(double seconds);

 private:
  CudaConditions(std::shared_ptr<const CudaContext> context, const DeviceFacts& facts);

  absl::Status Prepare(const std::string& binary);
  CUresult Launch(CUfunction kernel, unsigned blocks, unsigned threads, int64_t shared_bytes,
                  CUstream stream, void** arguments) const;

  const std::shared_ptr<const CudaContext> context_;
  const unsigned multiprocessors_;
  const int64_t shared_bytes_;
  CUmodule module_ = nullptr;
  CUfunction scrub_shared_ = nullptr;
  CUfunction scrub_local_ = nullptr;
  CUfunction occupy_ = nullptr;
  CUstream load_stream_ = nullptr;
  // Changes what the scrubs write and how much the load takes.
  uint32_t turn_ = 0;
};

}  // namespace mtmc::worker
