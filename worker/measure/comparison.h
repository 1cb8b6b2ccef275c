// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "worker/measure/series.h"
#include "worker/measure/statistics.h"

namespace mtmc::worker {

// Candidate against baseline, from samples taken in turns within one session.
struct ComparisonResult {
  enum class Outcome { kFaster, kSame, kSlower, kAmbiguous };
  Outcome outcome = Outcome::kAmbiguous;
  // Baseline time over candidate time; above 1 is faster.
  double speedup = 1;
  // 99 % interval of the speedup.
  Interval interval;
};

struct ComparisonOptions {
  // Differences below this ratio are never called faster or slower. Half of the
  // least difference that has to be told: what two processes that run one program
  // differ by (memory layout, about 0.2 %) must stay below it, and a difference of
  // 3 % above.
  double floor_ratio = 0.0175;
  // The same in seconds, twice the resolution of an event (32 ns on an H200): for
  // kernels of a few microseconds the larger of both counts.
  double floor_seconds = 64e-9;
  uint64_t seed = 1;
};

// The speedup is the geometric mean, over the turns, of the baseline's mid mean
// over the candidate's, without the lowest and highest eighth of the turns: a drift
// that reaches both sides of a turn cancels, and samples of one turn, which are not
// independent, count as one observation. With fewer than 4 turns it is the ratio of
// the medians with a bootstrap interval.
//
// FASTER when the interval lies above 1 and the speedup above 1 + floor; SLOWER likewise below;
// SAME when the interval lies within the floor around 1; else AMBIGUOUS. REQUIRES: both sides
// have samples, all positive.
ComparisonResult CompareSeries(const Series& baseline, const Series& candidate,
                               const ComparisonOptions& options);

}  // namespace mtmc::worker
