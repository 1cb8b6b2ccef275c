// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/cuda/cuda_context.h"
#include "worker/cuda/cuda_fill.h"
#include "worker/device/random_fill.h"

namespace mtmc::worker {

// Questions about bytes on the GPU that kernels of our own answer where the bytes lie, and
// random words that they write there.
class CudaScan {
 public:
  // The kernels' source, for the compiler that the caller has.
  static std::string Source();

  // `binary` is Source(), alone or with more, compiled for the context's device.
  static absl::StatusOr<std::unique_ptr<CudaScan>> Create(
      std::shared_ptr<const CudaContext> context, const std::string& binary);

  ~CudaScan();
  CudaScan(const CudaScan&) = delete;
  CudaScan& operator=(const CudaScan&) = delete;

  struct Question {
    enum class Kind {
      // 64 bits that differ when the `bytes` at `address` differ.
      kChecksum,
      // How many words are not as `fill` expects them.
      kWrongWords,
    };

    Kind kind = Kind::kChecksum;
    CUdeviceptr address = 0;
    int64_t bytes = 0;
    RandomFill fill{};
  };

  // The answers in the order of the questions. Waits for the stream, once for each
  // kMostAnswers of them.
  Outcome<std::vector<uint64_t>> Ask(std::span<const Question> questions);

  // Does what they say. What they find to be wrong is counted for TakeStrays. Enqueued.
  MaybeFailure Fill(std::span<const RandomFill> fills);

  // Whether any Fill before the last Ask found a wrong word; says so once.
  bool TakeStrays();

  // Forgets what Fills have found so far. Enqueued.
  void DropStrays();

  // The answer to one question of that kind.
  Outcome<uint64_t> Checksum(CUdeviceptr address, int64_t bytes);

 private:
  static constexpr size_t kMostAnswers = 64;

  explicit CudaScan(std::shared_ptr<const CudaContext> context);

  absl::Status Prepare(const std::string& binary);
  // Enqueues the kernels that add the answers to the words from `result` on.
  CUresult Enqueue(std::span<const Question> questions, CUdeviceptr result) const;

  const std::shared_ptr<const CudaContext> context_;
  std::unique_ptr<CudaFill> fill_;
  CUmodule module_ = nullptr;
  CUfunction checksum_ = nullptr;
  // On the device: what was wrong in any Fill, and answers; and where they are copied to.
  CUdeviceptr results_ = 0;
  uint64_t* fetched_ = nullptr;
  bool has_strays_ = false;
};

}  // namespace mtmc::worker
