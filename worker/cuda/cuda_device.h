// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/cuda/cuda_checksum.h"
#include "worker/cuda/cuda_context.h"
#include "worker/cuda/cupti_activity.h"
#include "worker/cuda/nvml_clock.h"
#include "worker/device/device.h"

namespace mtmc::worker {

// An NVIDIA GPU through the driver API. Times are those of CUDA events around
// everything that a body enqueues on the context's stream.
class CudaDevice final : public Device {
 public:
  struct Options {
    // CudaChecksum::Source() compiled for the device.
    std::string checksum_binary;
    // Path of libcupti.so.13; without it Profile uses events.
    std::string cupti;
  };

  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(
      std::shared_ptr<const CudaContext> context, const Options& options);
  ~CudaDevice() override;

  // Adds what was measured, or that a library is there.
  void set_facts(const DeviceFacts& facts) { facts_ = facts; }

  const DeviceFacts& facts() const override { return facts_; }

  Outcome<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  Outcome<std::unique_ptr<Buffer>> Wrap(void* address, int64_t bytes) override;
  Outcome<std::unique_ptr<Module>> Load(std::string_view binary) override;
  MaybeFailure Enqueue(const LaunchCommand& command) override;
  MaybeFailure Synchronize() override;
  Outcome<std::unique_ptr<Graph>> Capture(const Body& body) override;
  Outcome<TimedSample> Time(const Body& body, bool is_cold) override;
  Outcome<std::vector<StepActivity>> Profile(const std::vector<Body>& steps) override;

  std::string profile_source() const override { return cupti_ ? "cupti" : "events"; }

 private:
  explicit CudaDevice(std::shared_ptr<const CudaContext> context);

  MaybeFailure FlushCache();
  Outcome<StepActivity> ProfileStep(const Body& step);

  const std::shared_ptr<const CudaContext> context_;
  std::shared_ptr<const CudaChecksum> checksum_;
  DeviceFacts facts_;
  // Null where the host has none.
  std::unique_ptr<NvmlClock> clock_;
  std::unique_ptr<CuptiActivity> cupti_;
  CUevent start_ = nullptr;
  CUevent end_ = nullptr;
  // What FlushCache writes; made at the first use.
  CUdeviceptr flush_ = 0;
  size_t flush_bytes_ = 0;
};

}  // namespace mtmc::worker
