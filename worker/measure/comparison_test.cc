// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/comparison.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace mtmc::worker {
namespace {

using Outcome = ComparisonResult::Outcome;

std::vector<double> Noisy(double mean, double noise, int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw(mean, mean * noise);
  std::vector<double> samples(static_cast<size_t>(count));
  for (double& sample : samples) sample = draw(random);
  return samples;
}

TEST_CASE("CompareSamples names a clear difference by its side", "[measure]") {
  const auto baseline = Noisy(2e-3, 0.01, 40, 1);

  CHECK(CompareSamples(baseline, Noisy(1e-3, 0.01, 40, 2), {}).outcome == Outcome::kFaster);
  CHECK(CompareSamples(baseline, Noisy(3e-3, 0.01, 40, 3), {}).outcome == Outcome::kSlower);
}

TEST_CASE("CompareSamples calls a program compared with itself the same in 99 of 100 runs",
          "[measure]") {
  int same = 0;

  for (uint64_t run = 0; run < 100; ++run) {
    const auto a = Noisy(1e-3, 0.005, 100, 2 * run + 10);
    const auto b = Noisy(1e-3, 0.005, 100, 2 * run + 11);
    same += CompareSamples(a, b, {}).outcome == Outcome::kSame ? 1 : 0;
  }

  CHECK(same >= 99);
}

TEST_CASE("CompareSamples does not decide when noise hides the effect", "[measure]") {
  const auto baseline = Noisy(1e-3, 0.3, 10, 5);
  const auto candidate = Noisy(0.97e-3, 0.3, 10, 6);

  CHECK(CompareSamples(baseline, candidate, {}).outcome == Outcome::kAmbiguous);
}

TEST_CASE("CompareSamples never calls an effect below the floor faster", "[measure]") {
  const auto baseline = Noisy(1.005e-3, 0.0005, 100, 7);
  const auto candidate = Noisy(1e-3, 0.0005, 100, 8);

  const ComparisonResult result = CompareSamples(baseline, candidate, {});

  CHECK(result.interval.low > 1);
  CHECK(result.outcome == Outcome::kSame);
}

}  // namespace
}  // namespace mtmc::worker
