// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/cuda/cuda_conditions.h"
#include "worker/cuda/cuda_context.h"
#include "worker/cuda/cuda_memory.h"
#include "worker/cuda/cuda_profiler.h"
#include "worker/cuda/cuda_scan.h"
#include "worker/cuda/cuda_yardstick.h"
#include "worker/cuda/nvml_clock.h"
#include "worker/device/device.h"
#include "worker/device/host_lead.h"

namespace mtmc::worker {

// An NVIDIA GPU through the driver API. Times are those of CUDA events around
// everything that a body enqueues on the context's stream.
class CudaDevice final : public Device {
 public:
  struct Options {
    // CudaDevice::Source() compiled for the device.
    std::string kernels;
    // Path of libcupti.so.13; without it Profile uses events.
    std::string cupti;
  };

  // The kernels that the device needs for itself, for the compiler that the
  // caller has.
  static std::string Source();

  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(
      const std::shared_ptr<const CudaContext>& context, const Options& options);
  ~CudaDevice() override;

  // Adds what was measured, or that a library is there.
  void set_facts(const DeviceFacts& facts) { facts_ = facts; }

  const DeviceFacts& facts() const override { return facts_; }

  Outcome<std::unique_ptr<Buffer>> Allocate(int64_t bytes) override;
  Outcome<std::unique_ptr<Buffer>> Wrap(void* address, int64_t bytes) override;
  MaybeFailure Randomize(std::span<const BufferFill> fills, uint64_t seed) override;
  MaybeFailure Scan(std::span<BufferScan> scans) override;
  Outcome<std::unique_ptr<Module>> Load(std::string_view binary) override;
  MaybeFailure Enqueue(const LaunchCommand& command) override;
  MaybeFailure Synchronize() override;
  Outcome<std::unique_ptr<Graph>> Capture(const Body& body) override;
  Outcome<TimedSample> Time(const Body& body, bool is_cold) override;
  Outcome<std::optional<double>> TimeYardstick() override;
  MaybeFailure Scrub() override;
  MaybeFailure CheckGuards() override;
  MaybeFailure ClosePeers() override;
  MaybeFailure RunUnderLoad(std::span<const Body> steps) override;
  Outcome<std::vector<StepActivity>> Profile(const std::vector<Body>& steps) override;
  Outcome<StepCounters> Count(const std::vector<Body>& steps, CounterScope scope) override;

  void Detach() override {
    if (profiler_) profiler_->Detach();
  }

  std::string profile_source() const override;

 private:
  explicit CudaDevice(std::shared_ptr<const CudaContext> context);

  MaybeFailure FlushCache();
  Outcome<TimedSample> TimeBody(const Body& body, bool is_cold);
  double ReadClock();
  // After it, no cache line is the caller's and none waits to be written back.
  MaybeFailure CleanCache();

  const std::shared_ptr<const CudaContext> context_;
  std::unique_ptr<CudaScan> scan_;
  DeviceFacts facts_;
  // Null where the host has none.
  std::unique_ptr<NvmlClock> clock_;
  std::unique_ptr<CudaProfiler> profiler_;
  std::unique_ptr<CudaConditions> conditions_;
  std::unique_ptr<CudaYardstick> yardstick_;
  std::shared_ptr<CudaMemory> memory_;
  // Before the flush, and around the body.
  CUevent begin_ = nullptr;
  CUevent start_ = nullptr;
  CUevent end_ = nullptr;
  // What FlushCache writes; made at the first use.
  CUdeviceptr flush_ = 0;
  // What it is filled with: no byte that a program would write by chance, such as 0.
  const uint8_t flush_byte_;
  size_t flush_bytes_ = 0;
  // Of the buffer as FlushCache leaves it.
  uint64_t flush_checksum_ = 0;
  // Flushes before a sample.
  HostLead lead_;
  // What the host's clock sees beyond the events of an empty body.
  std::optional<double> empty_seconds_;
  double clock_hertz_ = 0;
  absl::Time clock_time_ = absl::InfinitePast();
};

}  // namespace mtmc::worker
