// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/statistics.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace mtmc::worker {
namespace {

using Catch::Matchers::WithinRel;

// Rounding only.
constexpr double kExact = 1e-12;

TEST_CASE("Quantile interpolates between neighbours", "[measure]") {
  const std::vector<double> samples = {4, 1, 3, 2};

  CHECK_THAT(Quantile(samples, 0), WithinRel(1.0, kExact));
  CHECK_THAT(Quantile(samples, 0.5), WithinRel(2.5, kExact));
  CHECK_THAT(Quantile(samples, 1), WithinRel(4.0, kExact));
}

TEST_CASE("NoiseRatio ignores a single outlier", "[measure]") {
  const std::vector<double> quiet = {1, 1.01, 0.99, 1, 1.01, 0.99, 1, 1, 1};
  std::vector<double> with_outlier = quiet;
  with_outlier.push_back(100);

  CHECK(NoiseRatio(with_outlier) < 0.03);
  CHECK(NoiseRatio(std::vector<double>{7}) == 0);
}

TEST_CASE("MidMean takes the middle half, in parts of a sample where it must", "[measure]") {
  CHECK_THAT(MidMean(std::vector<double>{-90, 1, 3, 1000}), WithinRel(2.0, kExact));
  CHECK_THAT(MidMean(std::vector<double>{1, 2, 6}), WithinRel((0.25 + 2 + 1.5) / 1.5, kExact));
  CHECK_THAT(MidMean(std::vector<double>{7}), WithinRel(7.0, kExact));
}

TEST_CASE("MidMean resolves more than the clock does", "[measure]") {
  // Three quarters of the middle half read 64, the rest 96.
  const std::vector<double> coarse = {32, 32, 64, 64, 64, 96, 96, 96};

  CHECK_THAT(MidMean(coarse), WithinRel(72.0, kExact));
}

TEST_CASE("TrimmedMeanOf covers the true mean in at least 97 of 100 draws", "[measure]") {
  std::mt19937_64 random(11);
  std::normal_distribution<double> draw(5.0, 0.1);
  int covered = 0;

  for (int run = 0; run < 100; ++run) {
    std::vector<double> values(10);
    for (double& value : values) value = draw(random);
    // A stray one, as a hiccup of the host makes it.
    if (run % 2 == 0) values[0] += 3;
    const Interval interval = TrimmedMeanOf(values).interval;
    covered += interval.low <= 5.0 && 5.0 <= interval.high ? 1 : 0;
  }

  CHECK(covered >= 97);
}

TEST_CASE("MedianErrorRatio shrinks with the root of the sample count", "[measure]") {
  std::vector<double> few;
  for (int i = 0; i < 20; ++i) few.push_back(1 + 0.01 * (i % 5));
  std::vector<double> many;
  for (int i = 0; i < 5; ++i) many.insert(many.end(), few.begin(), few.end());

  CHECK_THAT(MedianErrorRatio(few) / MedianErrorRatio(many), WithinRel(std::sqrt(5.0), 0.05));
}

TEST_CASE("MedianRatioInterval covers the true ratio in at least 97 of 100 draws", "[measure]") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> slow(1.2, 0.03);
  std::normal_distribution<double> fast(1.0, 0.03);
  int covered = 0;

  for (int run = 0; run < 100; ++run) {
    std::vector<double> numerator(30);
    std::vector<double> denominator(30);
    for (double& value : numerator) value = slow(random);
    for (double& value : denominator) value = fast(random);
    const Interval interval = MedianRatioInterval(numerator, denominator, 0.99, 1);
    covered += interval.low <= 1.2 && 1.2 <= interval.high ? 1 : 0;
  }

  CHECK(covered >= 97);
}

TEST_CASE("MedianRatioInterval is the same for the same seed", "[measure]") {
  const std::vector<double> a = {1, 2, 3, 4, 5};
  const std::vector<double> b = {2, 3, 4, 5, 6};

  const Interval first = MedianRatioInterval(a, b, 0.99, 42);
  const Interval second = MedianRatioInterval(a, b, 0.99, 42);

  CHECK(first.low == second.low);
  CHECK(first.high == second.high);
}

}  // namespace
}  // namespace mtmc::worker
