// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "worker/measure/stopping_rule.h"

namespace mtmc::worker {

// Samples of one block of executions, in seconds.
struct SampleBlock {
  std::vector<double> seconds;
  // Dropped because the clock was under its threshold.
  int throttled = 0;
};

// Takes `count` samples after `warmups` executions that do not count. Blocks
// for as long as they take.
using Sampler = std::function<absl::StatusOr<SampleBlock>(int count, int warmups)>;

// Everything one interleaved session has measured.
struct InterleavedSamples {
  struct Series {
    std::vector<double> seconds;
    int throttled = 0;
  };

  Series candidate;
  // Parallel to the baselines that were asked for.
  std::vector<Series> baselines;
  StoppingRule::Reason stopped_by = StoppingRule::Reason::kGoOn;
};

// Samples the candidate and every baseline in turns, so that a drift of clocks
// or temperature reaches all of them alike:
//
//   warm-up | c c c c c | b b b b b | c c c c c | b b b b b | ...   until `rule` is satisfied
//                                                                  for the candidate and each b
//
// The block length adapts, so that one block lasts about `block_time`: short
// kernels need many samples for the cost of a turn, long ones few. The first
// error of a sampler ends the session and is returned. Thread-compatible.
absl::StatusOr<InterleavedSamples> SampleInterleaved(const Sampler& candidate,
                                                     const std::vector<Sampler>& baselines,
                                                     const StoppingRule& rule,
                                                     const base::Clock& clock,
                                                     absl::Duration block_time);

}  // namespace mtmc::worker
