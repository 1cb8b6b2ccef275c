// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace mtmc::worker {

// Value below which the fraction `q` of the samples lies, linearly
// interpolated between neighbours. REQUIRES: samples not empty, 0 <= q <= 1.
double Quantile(std::span<const double> samples, double q);

// REQUIRES: samples not empty.
double Median(std::span<const double> samples);

// Interquartile range over median: a dispersion that single outliers do not
// move. 0 for one sample. REQUIRES: samples positive and not empty.
double NoiseRatio(std::span<const double> samples);

// Standard error of the median relative to the median, estimated from the
// interquartile range as for a normal distribution: 1.2533 * (IQR / 1.349) / sqrt(n).
// REQUIRES: samples positive and not empty.
double MedianErrorRatio(std::span<const double> samples);

struct Interval {
  double low = 0;
  double high = 0;
};

// Percentile bootstrap interval of Median(numerator) / Median(denominator)
// (Efron 1979) with 2,000 resamples of both sides. Deterministic in `seed`.
// REQUIRES: both positive and not empty, 0 < confidence < 1.
Interval MedianRatioInterval(std::span<const double> numerator, std::span<const double> denominator,
                             double confidence, uint64_t seed);

}  // namespace mtmc::worker
