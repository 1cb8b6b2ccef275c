// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/comparison.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace mtmc::worker {
namespace {

using Outcome = ComparisonResult::Outcome;

Series Noisy(double mean, double noise, int turns, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw(mean, mean * noise);
  Series series;
  for (int turn = 0; turn < turns; ++turn) {
    SampleBlock& block = series.turns.emplace_back();
    block.seconds.resize(5);
    for (double& sample : block.seconds) sample = draw(random);
  }
  return series;
}

TEST_CASE("CompareSeries names a clear difference by its side", "[measure]") {
  const Series baseline = Noisy(2e-3, 0.01, 10, 1);

  CHECK(CompareSeries(baseline, Noisy(1e-3, 0.01, 10, 2), {}).outcome == Outcome::kFaster);
  CHECK(CompareSeries(baseline, Noisy(3e-3, 0.01, 10, 3), {}).outcome == Outcome::kSlower);
}

TEST_CASE("CompareSeries cancels a drift that reaches both sides of a turn", "[measure]") {
  Series baseline = Noisy(1e-3, 0.001, 12, 4);
  Series candidate = Noisy(1e-3, 0.001, 12, 5);
  for (size_t turn = 0; turn < 12; ++turn) {
    const double clock = 1 + 0.05 * static_cast<double>(turn);
    for (double& sample : baseline.turns[turn].seconds) sample *= clock;
    for (double& sample : candidate.turns[turn].seconds) sample *= clock;
  }

  CHECK(CompareSeries(baseline, candidate, {}).outcome == Outcome::kSame);
}

TEST_CASE("CompareSeries leaves out a turn that one side lost", "[measure]") {
  const Series baseline = Noisy(1e-3, 0.001, 12, 4);
  Series candidate = Noisy(1e-3, 0.001, 12, 5);
  candidate.turns[3].seconds.clear();

  CHECK(CompareSeries(baseline, candidate, {}).outcome == Outcome::kSame);
}

TEST_CASE("CompareSeries falls back to medians where there are few turns", "[measure]") {
  const Series baseline = Noisy(2e-3, 0.01, 3, 1);

  CHECK(CompareSeries(baseline, Noisy(1e-3, 0.01, 3, 2), {}).outcome == Outcome::kFaster);
}

TEST_CASE("CompareSeries does not decide when noise hides the effect", "[measure]") {
  const auto baseline = Noisy(1e-3, 0.3, 10, 5);
  const auto candidate = Noisy(0.97e-3, 0.3, 10, 6);

  CHECK(CompareSeries(baseline, candidate, {}).outcome == Outcome::kAmbiguous);
}

TEST_CASE("CompareSeries takes off what one process adds to every program", "[measure]") {
  const Series baseline = Noisy(6.0e-6, 0.002, 20, 7);
  const Series candidate = Noisy(6.2e-6, 0.002, 20, 8);

  const ComparisonResult result =
      CompareSeries(baseline, candidate, {.offset = ProcessOffset{.seconds = 0.2e-6}});

  CHECK(result.offset_seconds == Approx(0.2e-6));
  CHECK(result.speedup == Approx(1).epsilon(0.003));
  CHECK(result.outcome == Outcome::kSame);
}

TEST_CASE("CompareSeries takes an offset off once for each launch", "[measure]") {
  Series baseline = Noisy(18.0e-6, 0.002, 20, 7);
  Series candidate = Noisy(18.6e-6, 0.002, 20, 8);
  for (Series* side : {&baseline, &candidate}) {
    for (SampleBlock& turn : side->turns) turn.launches = 3;
  }

  const ComparisonResult result =
      CompareSeries(baseline, candidate, {.offset = ProcessOffset{.seconds = 0.2e-6}});

  CHECK(result.speedup == Approx(1).epsilon(0.003));
}

TEST_CASE("CompareSeries widens its interval by what the offset may be wrong by", "[measure]") {
  const Series baseline = Noisy(6.0e-6, 0.002, 20, 7);
  const Series candidate = Noisy(6.0e-6, 0.002, 20, 8);

  const ComparisonResult result =
      CompareSeries(baseline, candidate, {.offset = ProcessOffset{.error_seconds = 0.3e-6}});

  CHECK(result.interval.low == Approx(0.95).epsilon(0.003));
  CHECK(result.interval.high == Approx(1.05).epsilon(0.003));
  CHECK(result.outcome == Outcome::kAmbiguous);
}

TEST_CASE("CompareSeries tells three percent of a short program with the offset only",
          "[measure]") {
  const Series baseline = Noisy(6.0e-6, 0.002, 20, 7);
  const Series candidate = Noisy(6.18e-6, 0.002, 20, 8);

  CHECK(CompareSeries(baseline, candidate, {}).outcome == Outcome::kSame);
  CHECK(CompareSeries(baseline, candidate, {.offset = ProcessOffset()}).outcome ==
        Outcome::kSlower);
}

TEST_CASE("CompareSeries never calls an effect below the floor faster", "[measure]") {
  const auto baseline = Noisy(1.005e-3, 0.0005, 20, 7);
  const auto candidate = Noisy(1e-3, 0.0005, 20, 8);

  const ComparisonResult result = CompareSeries(baseline, candidate, {});

  CHECK(result.interval.low > 1);
  CHECK(result.outcome == Outcome::kSame);
}

}  // namespace
}  // namespace mtmc::worker
