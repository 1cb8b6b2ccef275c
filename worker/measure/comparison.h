// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "worker/measure/process_offset.h"
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
  // By how much more than 1 a ratio had to differ: what ComparisonOptions make of the
  // shorter program.
  double floor_ratio = 0;
  // What was taken off the difference of the two, for each launch; 0 where no offset was
  // given.
  double offset_seconds = 0;
};

struct ComparisonOptions {
  // Differences below this ratio are never called faster or slower. Half of the
  // least difference that has to be told: what two processes that run one program
  // differ by (memory layout, about 0.2 %) must stay below it, and a difference of
  // 3 % above.
  double floor_ratio = 0.0175;
  // The same in seconds for each launch; the larger of both counts. A kernel takes longer
  // in one process than in another, every time and by the same for every kernel: with a
  // standard deviation of 0.08 us on an H200 (docs/measurement.md). Where the offset of the
  // two processes is known, what is left is 0.013 us, and less than the first number is no
  // difference; else less than the second.
  double floor_seconds = 0.12e-6;
  double uncorrected_floor_seconds = 0.35e-6;
  // Of the two processes, as far as it is known.
  std::optional<ProcessOffset> offset;
  uint64_t seed = 1;
};

// The speedup is the geometric mean, over the turns, of the baseline's mid mean
// over the candidate's, without the lowest and highest eighth of the turns: a drift
// that reaches both sides of a turn cancels, and samples of one turn, which are not
// independent, count as one observation. With fewer than 4 turns it is the ratio of
// the medians with a bootstrap interval. Where the offset of the processes is known, each
// side is taken to the middle of both, by half of it for each kernel that it launches; the
// error of the offset widens the interval.
//
// FASTER when the interval lies above 1 and the speedup above 1 + floor; SLOWER likewise below;
// SAME when the interval lies within the floor around 1; else AMBIGUOUS. REQUIRES: both sides
// have samples, all positive.
ComparisonResult CompareSeries(const Series& baseline, const Series& candidate,
                               const ComparisonOptions& options);

}  // namespace mtmc::worker
