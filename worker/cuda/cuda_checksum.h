// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/cuda/cuda_context.h"

namespace mtmc::worker {

// A checksum that the GPU computes at the speed of its memory, with a kernel of
// our own.
class CudaChecksum {
 public:
  // The kernel's source, for the compiler that the caller has.
  static const char* Source();

  // `binary` is Source() compiled for the context's device.
  static absl::StatusOr<std::shared_ptr<const CudaChecksum>> Create(
      std::shared_ptr<const CudaContext> context, const std::string& binary);

  ~CudaChecksum();
  CudaChecksum(const CudaChecksum&) = delete;
  CudaChecksum& operator=(const CudaChecksum&) = delete;

  // 64 bits that differ when the bytes differ. Waits for the stream.
  Outcome<uint64_t> Of(CUdeviceptr address, int64_t bytes) const;

 private:
  explicit CudaChecksum(std::shared_ptr<const CudaContext> context);

  const std::shared_ptr<const CudaContext> context_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  // Eight bytes on the device.
  CUdeviceptr result_ = 0;
};

}  // namespace mtmc::worker
