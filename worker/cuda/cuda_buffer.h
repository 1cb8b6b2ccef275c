// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "worker/cuda/cuda_context.h"
#include "worker/cuda/cuda_memory.h"
#include "worker/cuda/cuda_scan.h"
#include "worker/device/buffer.h"

namespace mtmc::worker {

// A tensor in GPU memory. Its allocation holds nothing else, so that sharing it
// with another process shares this tensor alone.
class CudaBuffer final : public Buffer {
 public:
  static Outcome<std::unique_ptr<Buffer>> Allocate(std::shared_ptr<const CudaContext> context,
                                                   std::shared_ptr<CudaMemory> memory,
                                                   int64_t bytes);

  // A view of memory that is not owned.
  CudaBuffer(std::shared_ptr<const CudaContext> context, CUdeviceptr address, int64_t bytes);
  ~CudaBuffer() override;

  void* address() const override;
  MaybeFailure Fill(uint8_t value) override;
  MaybeFailure Upload(std::span<const std::byte> data) override;
  MaybeFailure Download(std::span<std::byte> data) const override;
  MaybeFailure CopyFrom(const Buffer& source) override;
  MaybeFailure CopyFrom(const PeerMemory& source) override;
  std::optional<PeerMemory> Share() const override;

  // The buffer for CudaScan: with nothing to do yet, and its checksum.
  RandomFill Describe() const;
  CudaScan::Question AboutTensor() const;

 private:
  // All bytes of the allocation.
  int64_t TotalBytes() const;

  MaybeFailure Enqueued(CUresult error, const char* call) const;

  // Finishes what was enqueued; `error` is that of the last call.
  MaybeFailure Finish(CUresult error, const char* call) const;

  const std::shared_ptr<const CudaContext> context_;
  // Null for a view.
  std::shared_ptr<CudaMemory> memory_;
  // Start of the allocation with its redzones; 0 for a view.
  CUdeviceptr allocation_ = 0;
  // Bytes behind the second redzone.
  size_t slack_bytes_ = 0;
  const CUdeviceptr tensor_;
};

}  // namespace mtmc::worker
