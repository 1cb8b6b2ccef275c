// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/stopping_rule.h"

#include "worker/measure/statistics.h"

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

StoppingRule::Reason NoiseStoppingRule::Decide(std::span<const double> samples,
                                               absl::Duration elapsed) const {
  const int count = static_cast<int>(samples.size());
  if (count >= options_.min_samples && MedianErrorRatio(samples) <= options_.max_error_ratio) {
    return Reason::kNoise;
  }
  if (count >= options_.max_samples) return Reason::kSamples;
  // One sample is a measurement, if a poor one; none is not.
  if (count >= 1 && elapsed >= options_.max_time) return Reason::kTime;
  return Reason::kGoOn;
}

}  // namespace mtmc::worker
