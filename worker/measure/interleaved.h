// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "worker/measure/process_offset.h"
#include "worker/measure/series.h"
#include "worker/measure/stopping_rule.h"

namespace mtmc::worker {

// Takes the samples of a block. Blocks for as long as they take.
using Sampler = std::function<absl::StatusOr<SampleBlock>(const BlockRequest& request)>;

// Everything one interleaved session has measured.
struct InterleavedSamples {
  Series candidate;
  // Parallel to the baselines that were asked for.
  std::vector<Series> baselines;
  StoppingRule::Reason stopped_by = StoppingRule::Reason::kGoOn;
};

// How samples are cut into turns. Times of the host, preparation included.
struct TurnPlan {
  // Of one side: short against a drift of the clock, and long against the cost of a
  // turn (two pipe messages and checks of memory, about 0.5 ms).
  absl::Duration time = absl::Milliseconds(3);
  // Of the first turns otherwise: enough where the programs differ much or vary little.
  // Where those decide nothing, longer ones follow.
  absl::Duration first_time = absl::Milliseconds(1);
  // A program that takes so long has one sample in each turn, without a warm-up before it:
  // what the other side left in caches and clocks is then too little to matter.
  absl::Duration long_sample = absl::Milliseconds(50);
};

// Samples the candidate and every baseline in turns, so that a drift of clocks
// or temperature reaches all of them alike; every other round in reverse order, so
// that a steady drift cancels:
//
//   warm-up | c c c c c | b b b b b | b b b b b | c c c c c | c c c c c | ...
//             turn 1                   turn 2                 turn 3
//
// until `rule` is satisfied. The block length adapts to `turns.time`: short kernels
// need many samples for the cost of a turn, long ones few. The first turn, of a single
// sample, finds the length; it does not count where the kernels of one side are so short
// that its process shows in its time. There, all time the yardstick too where they have
// one: in every turn until `offsets`, which learns from it, knows their processes, and in
// one of eight from then on. The first error of a sampler ends the session and is returned.
// Thread-compatible.
absl::StatusOr<InterleavedSamples> SampleInterleaved(
    const Sampler& candidate, const std::vector<Sampler>& baselines, const StoppingRule& rule,
    const base::Clock& clock, ProcessOffsets& offsets, const TurnPlan& turns = {});

}  // namespace mtmc::worker
