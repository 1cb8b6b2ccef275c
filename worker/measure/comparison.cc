// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace mtmc::worker {
namespace {

constexpr double kConfidence = 0.99;
constexpr size_t kMinTurns = 4;

// A turn in which both sides have samples.
struct TurnPair {
  const SampleBlock* baseline;
  const SampleBlock* candidate;
};

std::vector<TurnPair> PairsOf(const Series& baseline, const Series& candidate) {
  std::vector<TurnPair> pairs;
  for (size_t i = 0; i < std::min(baseline.turns.size(), candidate.turns.size()); ++i) {
    const TurnPair pair{&baseline.turns[i], &candidate.turns[i]};
    if (!pair.baseline->seconds.empty() && !pair.candidate->seconds.empty()) pairs.push_back(pair);
  }
  return pairs;
}

// `seconds` less `offset`, of which it is never more than a quarter.
double Corrected(double seconds, double offset) {
  return seconds - std::clamp(offset, -seconds / 4, seconds / 4);
}

// Logarithm of baseline over candidate, one per turn. Each side is taken to the middle of
// both processes, `offset` seconds apart for each launch.
std::vector<double> LogRatios(const std::vector<TurnPair>& pairs, double offset) {
  std::vector<double> ratios;
  ratios.reserve(pairs.size());
  const double half = offset / 2;
  for (const auto [baseline, candidate] : pairs) {
    ratios.push_back(std::log(Corrected(MidMean(baseline->seconds), -half * baseline->launches) /
                              Corrected(MidMean(candidate->seconds), half * candidate->launches)));
  }
  return ratios;
}

double SecondsOfLaunch(const Series& side) {
  return Median(side.Seconds()) / side.turns.front().launches;
}

// Leaves the outcome open.
ComparisonResult Estimate(const Series& baseline, const Series& candidate,
                          const ComparisonOptions& options) {
  const double baseline_launch = SecondsOfLaunch(baseline);
  const double candidate_launch = SecondsOfLaunch(candidate);
  auto floor = [&](double seconds) {
    return std::max(options.floor_ratio, seconds / std::min(baseline_launch, candidate_launch));
  };
  const std::vector<TurnPair> pairs = PairsOf(baseline, candidate);
  if (pairs.size() < kMinTurns) {
    const std::vector<double> top = baseline.Seconds();
    const std::vector<double> bottom = candidate.Seconds();
    return {.speedup = Median(top) / Median(bottom),
            .interval = MedianRatioInterval(top, bottom, kConfidence, options.seed),
            .floor_ratio = floor(options.uncorrected_floor_seconds)};
  }
  const ProcessOffset offset = options.offset.value_or(ProcessOffset());
  const TrimmedMean mean = TrimmedMeanOf(LogRatios(pairs, offset.seconds));
  // What the offset may be wrong by, as a part of a launch.
  const double doubt = offset.error_seconds * (1 / baseline_launch + 1 / candidate_launch) / 2;
  const double half = std::hypot((mean.interval.high - mean.interval.low) / 2, doubt);
  return {.speedup = std::exp(mean.mean),
          .interval = {.low = std::exp(mean.mean - half), .high = std::exp(mean.mean + half)},
          .floor_ratio =
              floor(options.offset ? options.floor_seconds : options.uncorrected_floor_seconds),
          .offset_seconds = offset.seconds};
}

}  // namespace

ComparisonResult CompareSeries(const Series& baseline, const Series& candidate,
                               const ComparisonOptions& options) {
  ComparisonResult result = Estimate(baseline, candidate, options);
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
