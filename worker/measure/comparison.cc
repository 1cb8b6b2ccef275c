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
  for (const auto [baseline, candidate] : pairs) {
    const double half = offset / 2;
    ratios.push_back(std::log(Corrected(MidMean(baseline->seconds), -half * baseline->launches) /
                              Corrected(MidMean(candidate->seconds), half * candidate->launches)));
  }
  return ratios;
}

double SecondsOfLaunch(const Series& side) {
  return Median(side.Seconds()) / side.turns.front().launches;
}

// Half of an interval of the logarithm, widened by what `offset` may be wrong by.
double HalfInterval(const Interval& interval, const Series& baseline, const Series& candidate,
                    const std::optional<ProcessOffset>& offset) {
  const double half = (interval.high - interval.low) / 2;
  if (!offset) return half;
  const double sensitivity = (1 / SecondsOfLaunch(baseline) + 1 / SecondsOfLaunch(candidate)) / 2;
  return std::hypot(half, sensitivity * offset->error_seconds);
}

// Leaves the outcome open.
ComparisonResult Estimate(const Series& baseline, const Series& candidate,
                          const ComparisonOptions& options) {
  const double of_launch = std::min(SecondsOfLaunch(baseline), SecondsOfLaunch(candidate));
  auto floor = [&](double seconds) { return std::max(options.floor_ratio, seconds / of_launch); };
  const std::vector<TurnPair> pairs = PairsOf(baseline, candidate);
  if (pairs.size() < kMinTurns) {
    const std::vector<double> top = baseline.Seconds();
    const std::vector<double> bottom = candidate.Seconds();
    return {.speedup = Median(top) / Median(bottom),
            .interval = MedianRatioInterval(top, bottom, kConfidence, options.seed),
            .floor_ratio = floor(options.uncorrected_floor_seconds)};
  }
  const double offset = options.offset ? options.offset->seconds : 0;
  const TrimmedMean mean = TrimmedMeanOf(LogRatios(pairs, offset));
  const double half = HalfInterval(mean.interval, baseline, candidate, options.offset);
  return {.speedup = std::exp(mean.mean),
          .interval = {.low = std::exp(mean.mean - half), .high = std::exp(mean.mean + half)},
          .floor_ratio =
              floor(options.offset ? options.floor_seconds : options.uncorrected_floor_seconds),
          .offset_seconds = offset};
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
