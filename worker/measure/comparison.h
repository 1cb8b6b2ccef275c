// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "worker/measure/statistics.h"

namespace mtmc::worker {

// Candidate against baseline, from samples taken in turns within one session.
struct ComparisonResult {
  enum class Outcome { kFaster, kSame, kSlower, kAmbiguous };
  Outcome outcome = Outcome::kAmbiguous;
  // Baseline median over candidate median; above 1 is faster.
  double speedup = 1;
  // 99 % interval of the speedup.
  Interval interval;
};

struct ComparisonOptions {
  // Differences below this ratio are never called faster or slower: two runs of
  // one program differ by about half of it from session to session.
  double floor_ratio = 0.01;
  double confidence = 0.99;
  uint64_t seed = 1;
};

// FASTER when the interval lies above 1 and the speedup above 1 + floor; SLOWER likewise below;
// SAME when the interval lies within the floor around 1; else AMBIGUOUS. REQUIRES: both spans
// positive and not empty.
ComparisonResult CompareSamples(std::span<const double> baseline, std::span<const double> candidate,
                                const ComparisonOptions& options);

}  // namespace mtmc::worker
