// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/cuda/cuda_context.h"

namespace mtmc::worker {

// The state of the GPU in which a sample is taken, made by kernels of our own:
// nothing of the last execution on the chip, or a part of the chip taken.
class CudaConditions {
 public:
  // The kernels' source, for the compiler that the caller has; follows CudaFill::Source().
  static std::string Source();

  // `binary` is Source(), alone or with more, compiled for the context's device.
  static absl::StatusOr<std::unique_ptr<CudaConditions>> Create(
      std::shared_ptr<const CudaContext> context, const std::string& binary,
      const DeviceFacts& facts);

  ~CudaConditions();
  CudaConditions(const CudaConditions&) = delete;
  CudaConditions& operator=(const CudaConditions&) = delete;

  // How much local memory a thread of the program may have, in any of its kernels.
  void set_local_bytes(int bytes) { local_bytes_ = bytes; }

  int local_bytes() const { return local_bytes_; }

  // Overwrites with random words all shared memory, and the local memory of every thread that
  // can be resident: as much as the program's threads have, 512 bytes at least. With them go
  // L1 and L2. Enqueued.
  MaybeFailure Scrub();

  // Makes lines that a kernel asked to stay in L2 ordinary ones, which a flush
  // evicts. REQUIRES: the device is idle.
  void ReleasePersistingLines() const;

  // Starts kernels on other streams that take a part of the device, another one each time,
  // until EndLoad's turn comes on the context's stream, or for kMostLoadSeconds: some
  // multiprocessors by half; or all but a few of them; or all but the room for one block, so
  // that the blocks of a program come one after the other. Returns once they run.
  MaybeFailure StartLoad();
  MaybeFailure EndLoad();

  // Keeps the context's stream busy for a while. Enqueued.
  MaybeFailure Delay(double seconds);

  // Longer than a kernel might wait for the writes of another block instead of synchronizing
  // with it.
  static constexpr double kMostLoadSeconds = 4e-3;

 private:
  CudaConditions(std::shared_ptr<const CudaContext> context, const DeviceFacts& facts);

  absl::Status Prepare(const std::string& binary);
  CUresult Launch(CUfunction kernel, unsigned blocks, unsigned threads, int64_t shared_bytes,
                  CUstream stream, void** arguments) const;
  // A scrub whose blocks, which fill the device, meet before they go on, so that each has a
  // part of the chip of its own.
  CUresult LaunchScrub(CUfunction kernel, unsigned blocks, unsigned threads, int64_t shared_bytes);
  // The scrub with the least local memory that is enough for the program. Null on an error.
  CUfunction FindLocalScrub();
  CUresult LaunchLoad(unsigned blocks, unsigned threads, int64_t shared_bytes, CUstream stream);

  const std::shared_ptr<const CudaContext> context_;
  const unsigned multiprocessors_;
  const MultiprocessorLimits limits_;
  const int64_t shared_bytes_;
  CUmodule module_ = nullptr;
  CUfunction scrub_shared_ = nullptr;
  // By the bytes that each has for a thread; found when it is needed, because the driver may
  // take memory for it then.
  std::map<int, CUfunction> scrub_local_;
  CUfunction occupy_ = nullptr;
  CUfunction delay_ = nullptr;
  std::array<CUstream, 2> load_streams_{};
  // On the device: how many blocks of scrubs have begun so far, and how many loads have ended.
  CUdeviceptr counters_ = 0;
  uint32_t num_scrub_blocks_ = 0;
  uint32_t num_loads_ = 0;
  int local_bytes_ = 0;
};

}  // namespace mtmc::worker
