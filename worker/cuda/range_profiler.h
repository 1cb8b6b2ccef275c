// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/cuda/counter_config.h"
#include "worker/cuda/cuda_context.h"
#include "worker/device/device.h"

namespace mtmc::worker {

// Hardware counters of each step of a plan, through CUPTI's range profiler.
//
//   Enable          once per counter set
//   SetConfig
//     pass 1..n     prepare, Start, for each step: Push, run, Pop; Stop
//   Decode
//   Disable
//
// The whole plan is run again for every pass (`user replay`), from caches that
// `prepare` makes cold. CUPTI's own replay of single kernels would save and
// restore all memory that a kernel writes, and cannot span a library call of
// several kernels. A plan gives the same result each time it runs, so nothing has
// to be restored.
//
// What does not change (the chip, what the driver allows, the schedule of the
// counters) is found at the first use and kept. Thread-compatible; at most one
// per process.
class RangeProfiler {
 public:
  // Borrows `api`, which is the process's.
  RangeProfiler(const CuptiApi& api, std::shared_ptr<const CudaContext> context);
  ~RangeProfiler();
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  // Runs all steps once per pass. A failure is a step's; what keeps counters from
  // being read is told in the result. REQUIRES: no other use of CUPTI is active.
  Outcome<StepCounters> Count(const std::vector<Body>& steps, CounterScope scope,
                              const Body& prepare);

 private:
  class Session;

  struct Set {
    profile::CounterSet name;
    // Null until it is first used.
    std::unique_ptr<CounterConfig> config;
    // Why it is not used any more.
    absl::Status status;
  };

  absl::Status Initialize();
  absl::Status CheckSupport();
  absl::Status Describe();
  void Detach();

  // Adds the counters of `set` to `counters`; an error leaves them as they were.
  Outcome<absl::Status> CountSet(Set& set, const std::vector<Body>& steps, const Body& prepare,
                                 StepCounters& counters);

  const CuptiApi& api_;
  const std::shared_ptr<const CudaContext> context_;
  // Empty before the first use.
  std::string chip_;
  std::vector<uint8_t> availability_;
  std::array<Set, 3> sets_;
};

}  // namespace mtmc::worker
