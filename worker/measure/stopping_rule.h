// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/time/time.h"

namespace mtmc::worker {

// How far a measurement has come.
struct Progress {
  // Kept samples and turns of the side that has fewest.
  int samples = 0;
  int turns = 0;
  // Largest relative standard error of a side's median.
  double error_ratio = 0;
  // Largest half width of the interval of a speedup, near 1 and for long programs: less
  // where that or the floor is far from there; 0 where nothing is compared.
  double interval_ratio = 0;
  // Since sampling began, pauses included.
  absl::Duration elapsed;
};

// Decides when a measurement has enough samples.
class StoppingRule {
 public:
  // Why sampling ended; kept with the measurement.
  enum class Reason { kGoOn, kNoise, kSamples, kTime };

  virtual ~StoppingRule() = default;

  virtual Reason Decide(const Progress& progress) const = 0;
};

// `noise`, `samples` or `time`; empty for kGoOn.
std::string_view ToText(StoppingRule::Reason reason);

// Stops when the standard error of every median and the interval of every speedup
// have become small, after at least `min_samples` (or the smaller number for slow
// ones) and `min_turns`, and at the latest after `max_samples` or `max_time`.
class NoiseStoppingRule : public StoppingRule {
 public:
  struct Options {
    // Fewer than 10 make the interquartile range meaningless.
    int min_samples = 10;
    // Enough once sampling has taken `slow_time`: long samples are quiet ones, and where each
    // is a turn of its own, the interval looks after the rest.
    int min_slow_samples = 6;
    absl::Duration slow_time = absl::Milliseconds(30);
    // The interval comes from the differences between turns: fewer make Student's t
    // so large that the interval says nothing.
    int min_turns = 6;
    // Enough for the interval below at 4 % of noise in the samples and in those of the
    // yardstick; more only costs time.
    int max_samples = 1500;
    // Relative standard error of the median to reach, a ratio.
    double max_error_ratio = 0.005;
    // Half width of the interval to reach near 1: under half of what counts as a difference
    // (ComparisonOptions::floor_ratio).
    double max_interval_ratio = 0.0075;
    // However noisy, stop after this. Chosen so that a job of 16 trials stays
    // under half a minute.
    absl::Duration max_time = absl::Seconds(2);
  };

  explicit NoiseStoppingRule(Options options) : options_(options) {}

  Reason Decide(const Progress& progress) const override;

 private:
  const Options options_;
};

}  // namespace mtmc::worker
