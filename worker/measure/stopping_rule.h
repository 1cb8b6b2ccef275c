// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "absl/time/time.h"

namespace mtmc::worker {

// Decides when a measurement has enough samples.
class StoppingRule {
 public:
  // Why sampling ended; kept with the measurement.
  enum class Reason { kGoOn, kNoise, kSamples, kTime };

  virtual ~StoppingRule() = default;

  // `samples` are all kept samples in seconds, in order; `elapsed` is the time
  // since sampling began, pauses included.
  virtual Reason Decide(std::span<const double> samples, absl::Duration elapsed) const = 0;
};

// `noise`, `samples` or `time`; empty for kGoOn.
std::string_view ToText(StoppingRule::Reason reason);

// Stops when the standard error of the median has become small, after at least
// `min_samples`, and at the latest after `max_samples` or `max_time`.
class NoiseStoppingRule : public StoppingRule {
 public:
  struct Options {
    // Fewer than 10 make the interquartile range meaningless.
    int min_samples = 20;
    // Enough for a 0.5 % error at 7 % noise; more only costs time.
    int max_samples = 200;
    // Relative standard error of the median to reach, a ratio.
    double max_error_ratio = 0.005;
    // However noisy, stop after this. Chosen so that a job of 16 trials stays
    // under half a minute.
    absl::Duration max_time = absl::Seconds(2);
  };

  explicit NoiseStoppingRule(Options options) : options_(options) {}

  Reason Decide(std::span<const double> samples, absl::Duration elapsed) const override;

 private:
  const Options options_;
};

}  // namespace mtmc::worker
