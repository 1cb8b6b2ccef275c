// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
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

// One value of this many is cut off at each end of a trimmed mean.
constexpr size_t kTrimShare = 8;

// Student's t at 99.5 %, by degrees of freedom from 1.
constexpr double kStudent[] = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499,
                               3.355,  3.250, 3.169, 3.106, 3.055, 3.012, 2.977,
                               2.947,  2.921, 2.898, 2.878, 2.861, 2.845};

double StudentQuantile(int degrees) {
  const auto index = static_cast<size_t>(std::max(degrees, 1) - 1);
  if (index < std::size(kStudent)) return kStudent[index];
  // First terms of its expansion around the normal quantile; exact to 0.2 % here.
  constexpr double kNormal = 2.5758;
  return kNormal + (kNormal * kNormal * kNormal + kNormal) / (4.0 * degrees);
}

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

double MidMean(std::span<const double> samples) {
  MTMC_CHECK(!samples.empty());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  // A quarter of the samples is cut off at each end, in parts of a sample where
  // the count is no multiple of four.
  const double cut = static_cast<double>(sorted.size()) / 4;
  double sum = 0;
  double weights = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto first = static_cast<double>(i);
    const double inside =
        std::min(first + 1, static_cast<double>(sorted.size()) - cut) - std::max(first, cut);
    const double weight = std::clamp(inside, 0.0, 1.0);
    sum += weight * sorted[i];
    weights += weight;
  }
  return sum / weights;
}

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

TrimmedMean TrimmedMeanOf(std::span<const double> values) {
  MTMC_CHECK(values.size() >= 2);
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t trimmed = sorted.size() / kTrimShare;
  const size_t kept = sorted.size() - 2 * trimmed;
  const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(trimmed);
  const auto last = first + static_cast<std::ptrdiff_t>(kept);
  TrimmedMean result;
  result.mean = std::accumulate(first, last, 0.0) / static_cast<double>(kept);
  // The cut values count as the nearest that stay.
  std::fill(sorted.begin(), first, *first);
  std::fill(last, sorted.end(), *(last - 1));
  const auto count = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (const double value : sorted) squares += (value - mean) * (value - mean);
  const double kept_ratio = static_cast<double>(kept) / count;
  const double error = std::sqrt(squares / (count - 1) / count) / kept_ratio;
  const double half = StudentQuantile(static_cast<int>(kept) - 1) * error;
  result.interval = {.low = result.mean - half, .high = result.mean + half};
  return result;
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
