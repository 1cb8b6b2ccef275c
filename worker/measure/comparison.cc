// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/comparison.h"

namespace mtmc::worker {

ComparisonResult CompareSamples(std::span<const double> baseline, std::span<const double> candidate,
                                const ComparisonOptions& options) {
  ComparisonResult result;
  result.speedup = Median(baseline) / Median(candidate);
  result.interval = MedianRatioInterval(baseline, candidate, options.confidence, options.seed);
  const double above = 1 + options.floor_ratio;
  const double below = 1 / above;
  using Outcome = ComparisonResult::Outcome;
  if (result.interval.low > 1 && result.speedup > above) {
    result.outcome = Outcome::kFaster;
  } else if (result.interval.high < 1 && result.speedup < below) {
    result.outcome = Outcome::kSlower;
  } else if (result.interval.low >= below && result.interval.high <= above) {
    result.outcome = Outcome::kSame;
  }
  return result;
}

}  // namespace mtmc::worker
