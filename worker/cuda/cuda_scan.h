// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/cuda/cuda_context.h"

namespace mtmc::worker {

// Questions about bytes on the GPU that kernels of our own answer where the bytes lie.
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

  struct Question {
    enum class Kind {
      // 64 bits that differ when the `bytes` at `front` differ.
      kChecksum,
      // How many of the `bytes` at `front` and of those at `back` are not `value`.
      kCountOther,
    };

    Kind kind = Kind::kChecksum;
    CUdeviceptr front = 0;
    CUdeviceptr back = 0;
    int64_t bytes = 0;
    uint8_t value = 0;
  };

  // The answers in the order of the questions. Waits for the stream, once for each
  // kMostAnswers of them.
  Outcome<std::vector<uint64_t>> Ask(std::span<const Question> questions) const;

  // The answer to one question of that kind.
  Outcome<uint64_t> Checksum(CUdeviceptr address, int64_t bytes) const;

 private:
  static constexpr size_t kMostAnswers = 64;

  explicit CudaScan(std::shared_ptr<const CudaContext> context);

  absl::Status Prepare(const std::string& binary);
  // Enqueues the kernel that adds the answer to the eight bytes at `result`.
  CUresult Enqueue(const Question& question, CUdeviceptr result) const;

  const std::shared_ptr<const CudaContext> context_;
  CUmodule module_ = nullptr;
  CUfunction checksum_ = nullptr;
  CUfunction count_other_ = nullptr;
  // Answers on the device, and where they are copied to.
  CUdeviceptr results_ = 0;
  uint64_t* fetched_ = nullptr;
};

}  // namespace mtmc::worker
