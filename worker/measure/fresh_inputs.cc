// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/fresh_inputs.h"

#include <algorithm>

#include "common/base/check.h"
#include "worker/measure/statistics.h"

namespace mtmc::worker {
namespace {

// Replaying a result instead of computing it is worth doing only for far more.
constexpr double kMarginRatio = 0.25;
// On a busy host an honest sample strays this many interquartile ranges.
constexpr double kStray = 3;
// No noise excuses more: replays that gained 1.9 to 2.5 hid behind it.
constexpr double kMostRatio = 0.8;

}  // namespace

bool AreSlower(std::span<const double> fresh, std::span<const double> usual) {
  MTMC_CHECK(!fresh.empty() && !usual.empty());
  // No upper quantile: who replays most results and computes the rest would hide
  // behind those it computes.
  const double median = Median(usual);
  const double limit = median * (1 + std::clamp(kStray * NoiseRatio(usual), kMarginRatio, kMostRatio));
  return std::all_of(fresh.begin(), fresh.end(),
                     [limit](double seconds) { return seconds > limit; });
}

}  // namespace mtmc::worker
