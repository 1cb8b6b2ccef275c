// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/cuda/cuda_context.h"

namespace mtmc::worker {

// Questions about bytes on the GPU that kernels of our own answer where the bytes lie.
// Both wait for the stream.
class CudaScan {
 public:
  // The kernels' source, for the compiler that the caller has.
  static const char* Source();

  // `binary` is Source(), alone or with more, compiled for the context's device.
  static absl::StatusOr<std::shared_ptr<const CudaScan>> Create(
      std::shared_ptr<const CudaContext> context, const std::string& binary);

  ~CudaScan();
  CudaScan(const CudaScan&) = delete;
  CudaScan& operator=(const CudaScan&) = delete;

  // 64 bits that differ when the bytes differ.
  Outcome<uint64_t> Checksum(CUdeviceptr address, int64_t bytes) const;

  // Whether all of the `bytes` at `front` and at `back` are `value`.
  Outcome<bool> AreFilled(CUdeviceptr front, CUdeviceptr back, int64_t bytes, uint8_t value) const;

 private:
  explicit CudaScan(std::shared_ptr<const CudaContext> context);

  absl::Status Prepare(const std::string& binary);
  // What `kernel` adds to a result that was 0; its last parameter is that result.
  Outcome<uint64_t> Run(CUfunction kernel, int64_t blocks, void** arguments) const;

  const std::shared_ptr<const CudaContext> context_;
  CUmodule module_ = nullptr;
  CUfunction checksum_ = nullptr;
  CUfunction count_other_ = nullptr;
  // Eight bytes on the device, and where they are copied to.
  CUdeviceptr result_ = 0;
  uint64_t* fetched_ = nullptr;
};

}  // namespace mtmc::worker
