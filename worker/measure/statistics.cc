// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "common/base/check.h"

namespace mtmc::worker {
namespace {

// 2,000 resamples put about ten of them beyond each end of a 99 % interval,
// which fixes its ends to a few percent of its width, in under a millisecond
// for the usual 20 to 200 samples.
constexpr int kResamples = 2000;

// A normal distribution's interquartile range in standard deviations, and the
// standard error of its median in standard errors of its mean.
constexpr double kIqrInSigmas = 1.349;
constexpr double kMedianEfficiency = 1.2533;

double SortedQuantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto lower = static_cast<size_t>(std::floor(position));
  const size_t upper = std::min(lower + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(lower);
  return sorted[lower] + weight * (sorted[upper] - sorted[lower]);
}

double ResampledMedian(std::span<const double> samples, std::mt19937_64& random,
                       std::vector<double>& scratch) {
  scratch.resize(samples.size());
  std::uniform_int_distribution<size_t> pick(0, samples.size() - 1);
  for (double& value : scratch) value = samples[pick(random)];
  const auto middle = scratch.begin() + static_cast<std::ptrdiff_t>(scratch.size() / 2);
  std::nth_element(scratch.begin(), middle, scratch.end());
  if (scratch.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(scratch.begin(), middle)) / 2;
}

}  // namespace

double Quantile(std::span<const double> samples, double q) {
  MTMC_CHECK(!samples.empty());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return SortedQuantile(sorted, q);
}

double Median(std::span<const double> samples) { return Quantile(samples, 0.5); }

double NoiseRatio(std::span<const double> samples) {
  MTMC_CHECK(!samples.empty());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return (SortedQuantile(sorted, 0.75) - SortedQuantile(sorted, 0.25)) /
         SortedQuantile(sorted, 0.5);
}

double MedianErrorRatio(std::span<const double> samples) {
  return kMedianEfficiency * NoiseRatio(samples) / kIqrInSigmas /
         std::sqrt(static_cast<double>(samples.size()));
}

Interval MedianRatioInterval(std::span<const double> numerator, std::span<const double> denominator,
                             double confidence, uint64_t seed) {
  MTMC_CHECK(!numerator.empty() && !denominator.empty());
  std::mt19937_64 random(seed);
  std::vector<double> scratch;
  std::vector<double> ratios(kResamples);
  for (double& ratio : ratios) {
    const double top = ResampledMedian(numerator, random, scratch);
    ratio = top / ResampledMedian(denominator, random, scratch);
  }
  std::sort(ratios.begin(), ratios.end());
  const double tail = (1 - confidence) / 2;
  return {.low = SortedQuantile(ratios, tail), .high = SortedQuantile(ratios, 1 - tail)};
}

}  // namespace mtmc::worker
