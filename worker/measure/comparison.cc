// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
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

bool HasYardstick(const TurnPair& pair) {
  return !pair.baseline->yardstick_seconds.empty() && !pair.candidate->yardstick_seconds.empty();
}

// Leaves out the turns in which one side lost its yardstick, if they are few, and returns
// by how much longer it took on the candidate's side of each that stays. Empty when the
// yardstick says nothing: `pairs` is left as it is then.
std::vector<double> TakeOffsets(std::vector<TurnPair>& pairs, double most_offset_seconds) {
  std::vector<TurnPair> those;
  std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(those), HasYardstick);
  if (those.size() < kMinTurns || 2 * those.size() < pairs.size()) return {};
  std::vector<double> offsets;
  offsets.reserve(those.size());
  for (const TurnPair& pair : those) {
    offsets.push_back(MidMean(pair.candidate->yardstick_seconds) -
                      MidMean(pair.baseline->yardstick_seconds));
  }
  if (std::abs(Median(offsets)) > most_offset_seconds) return {};
  pairs = std::move(those);
  return offsets;
}

// `seconds` less `offset`, of which it is never more than a quarter.
double Corrected(double seconds, double offset) {
  return seconds - std::clamp(offset, -seconds / 4, seconds / 4);
}

// Logarithm of baseline over candidate, one per turn. `offsets` may be empty.
std::vector<double> LogRatios(const std::vector<TurnPair>& pairs,
                              const std::vector<double>& offsets) {
  std::vector<double> ratios;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [baseline, candidate] = pairs[i];
    // Each side is taken to where both processes have the same yardstick, half way.
    const double half = offsets.empty() ? 0 : offsets[i] / 2;
    ratios.push_back(std::log(Corrected(MidMean(baseline->seconds), -half * baseline->launches) /
                              Corrected(MidMean(candidate->seconds), half * candidate->launches)));
  }
  return ratios;
}

// Time of each launch, on the side where it is shorter.
double SecondsOfLaunch(const Series& baseline, const Series& candidate) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const Series* side : {&baseline, &candidate}) {
    shortest = std::min(shortest, Median(side->Seconds()) / side->turns.front().launches);
  }
  return shortest;
}

// Leaves the outcome open.
ComparisonResult Estimate(const Series& baseline, const Series& candidate,
                          const ComparisonOptions& options) {
  const double of_launch = SecondsOfLaunch(baseline, candidate);
  auto floor = [&](double seconds) { return std::max(options.floor_ratio, seconds / of_launch); };
  std::vector<TurnPair> pairs = PairsOf(baseline, candidate);
  if (pairs.size() < kMinTurns) {
    const std::vector<double> top = baseline.Seconds();
    const std::vector<double> bottom = candidate.Seconds();
    return {.speedup = Median(top) / Median(bottom),
            .interval = MedianRatioInterval(top, bottom, kConfidence, options.seed),
            .floor_ratio = floor(options.uncorrected_floor_seconds)};
  }
  const std::vector<double> offsets = TakeOffsets(pairs, options.most_offset_seconds);
  const TrimmedMean mean = TrimmedMeanOf(LogRatios(pairs, offsets));
  return {.speedup = std::exp(mean.mean),
          .interval = {.low = std::exp(mean.interval.low), .high = std::exp(mean.interval.high)},
          .floor_ratio =
              floor(offsets.empty() ? options.uncorrected_floor_seconds : options.floor_seconds),
          .offset_seconds = offsets.empty() ? 0 : MidMean(offsets)};
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
