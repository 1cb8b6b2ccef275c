// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/stopping_rule.h"

#include <algorithm>

namespace mtmc::worker {

std::string_view ToText(StoppingRule::Reason reason) {
  switch (reason) {
    case StoppingRule::Reason::kGoOn:
      return "";
    case StoppingRule::Reason::kNoise:
      return "noise";
    case StoppingRule::Reason::kSamples:
      return "samples";
    case StoppingRule::Reason::kTime:
      return "time";
  }
  return "";
}

StoppingRule::Reason NoiseStoppingRule::Decide(const Progress& progress) const {
  const bool is_slow = progress.elapsed >= options_.slow_time;
  const int min_samples =
      is_slow ? std::min(options_.min_slow_samples, options_.min_samples) : options_.min_samples;
  if (progress.samples >= min_samples && progress.turns >= options_.min_turns &&
      progress.error_ratio <= options_.max_error_ratio &&
      progress.interval_ratio <= options_.max_interval_ratio) {
    return Reason::kNoise;
  }
  if (progress.samples >= options_.max_samples) return Reason::kSamples;
  // One sample is a measurement, if a poor one; none is not.
  if (progress.samples >= 1 && progress.elapsed >= options_.max_time) return Reason::kTime;
  return Reason::kGoOn;
}

}  // namespace mtmc::worker
