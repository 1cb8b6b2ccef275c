// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/comparison.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mtmc::worker {
namespace {

constexpr double kConfidence = 0.99;
constexpr size_t kMinTurns = 4;

// Logarithm of baseline over candidate, one per turn in which both have samples.
std::vector<double> LogRatios(const Series& baseline, const Series& candidate) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(baseline.turns.size(), candidate.turns.size()); ++i) {
    const auto& top = baseline.turns[i].seconds;
    const auto& bottom = candidate.turns[i].seconds;
    if (top.empty() || bottom.empty()) continue;
    ratios.push_back(std::log(MidMean(top) / MidMean(bottom)));
  }
  return ratios;
}

// Leaves the outcome open.
ComparisonResult Estimate(const Series& baseline, const Series& candidate, uint64_t seed) {
  const std::vector<double> ratios = LogRatios(baseline, candidate);
  if (ratios.size() >= kMinTurns) {
    const TrimmedMean mean = TrimmedMeanOf(ratios);
    return {.speedup = std::exp(mean.mean),
            .interval = {.low = std::exp(mean.interval.low), .high = std::exp(mean.interval.high)}};
  }
  const std::vector<double> top = baseline.Seconds();
  const std::vector<double> bottom = candidate.Seconds();
  return {.speedup = Median(top) / Median(bottom),
          .interval = MedianRatioInterval(top, bottom, kConfidence, seed)};
}

}  // namespace

ComparisonResult CompareSeries(const Series& baseline, const Series& candidate,
                               const ComparisonOptions& options) {
  ComparisonResult result = Estimate(baseline, candidate, options.seed);
  const double shorter = std::min(Median(baseline.Seconds()), Median(candidate.Seconds()));
  result.floor_ratio = std::max(options.floor_ratio, options.floor_seconds / shorter);
  const double above = 1 + result.floor_ratio;
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
