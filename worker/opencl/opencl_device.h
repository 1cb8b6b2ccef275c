// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "worker/device/device.h"
#include "worker/opencl/opencl_context.h"

namespace mtmc::worker {

// An OpenCL device; on hosts without a GPU, the processor through PoCL. Times
// are host times from the first enqueue to the end of the queue.
class OpenClDevice final : public Device {
 public:
  explicit OpenClDevice(std::shared_ptr<const OpenClContext> context);

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

  // OpenCL 1.2 has no graphs: the result runs `body` again.
  Outcome<std::unique_ptr<Graph>> Capture(const Body& body) override;
  Outcome<TimedSample> Time(const Body& body, bool is_cold) override;

  // Fills the local memory, and the first megabyte of private memory, of the threads that run
  // work-groups; both are ordinary memory of the host's on a processor, and stay from launch to
  // launch. Without a compiler it does nothing, and says so in the log.
  MaybeFailure Scrub() override;

  // The load is, on a processor, threads that compete for its cores; on another
  // device, a fill of memory on a second queue.
  MaybeFailure RunUnderLoad(std::span<const Body> steps) override;
  Outcome<std::vector<StepActivity>> Profile(const std::vector<Body>& steps) override;

  // OpenCL C has none, and on a host no other processor to count.
  bool programs_have_clock() const override;

  std::string profile_source() const override { return "host"; }

 private:
  MaybeFailure FlushCache();
  MaybeFailure RunBesideFill(std::span<const Body> steps);
  // Null where it cannot be had.
  std::unique_ptr<Module> MakeScrub();

  const std::shared_ptr<const OpenClContext> context_;
  DeviceFacts facts_;
  // What FlushCache writes; made at the first use.
  std::unique_ptr<Buffer> flush_;
  uint8_t flush_value_ = 0;
  // Made at the first use.
  std::optional<std::unique_ptr<Module>> scrub_;
  // Where the work-groups of scrubs meet, and how many scrubs there were.
  std::unique_ptr<Buffer> arrived_;
  uint32_t scrubs_ = 0;
  // Something was written around a buffer before that was filled anew.
  bool has_strays_ = false;
};

}  // namespace mtmc::worker
