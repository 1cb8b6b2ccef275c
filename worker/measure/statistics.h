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

// Mean of the middle half: as deaf to outliers as a median has to be here, but
// finer than the clock's resolution, because samples that fall on few distinct
// values still average. REQUIRES: samples not empty.
double MidMean(std::span<const double> samples);

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

// Mean of the values without the lowest and the highest eighth, and its 99 %
// interval: Student's t with the winsorized variance (Tukey and McLaughlin 1963).
// At the 8 to 40 values it is used for, one stray value neither moves the mean nor
// hides in it. REQUIRES: at least 2 values.
struct TrimmedMean {
  double mean = 0;
  Interval interval;
};

TrimmedMean TrimmedMeanOf(std::span<const double> values);

// Percentile bootstrap interval of Median(numerator) / Median(denominator)
// (Efron 1979) with 2,000 resamples of both sides. Deterministic in `seed`.
// REQUIRES: both positive and not empty, 0 < confidence < 1.
Interval MedianRatioInterval(std::span<const double> numerator, std::span<const double> denominator,
                             double confidence, uint64_t seed);

}  // namespace mtmc::worker
