// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/fresh_inputs.h"

#include <algorithm>
#include <vector>

#include "common/base/check.h"
#include "worker/measure/statistics.h"

namespace mtmc::worker {
namespace {

// Replaying a result instead of computing it is worth doing only for far more.
constexpr double kMargin = 1.25;

}  // namespace

double FreshSlowdown(std::span<const FreshExecution> fresh, std::span<const double> usual) {
  MTMC_CHECK(!fresh.empty() && !usual.empty());
  std::vector<double> seconds;
  for (const FreshExecution& execution : fresh) seconds.push_back(execution.seconds);
  return Median(seconds) / Median(usual);
}

FreshTime JudgeFresh(std::span<const FreshExecution> fresh, std::span<const double> usual) {
  if (FreshSlowdown(fresh, usual) <= kMargin) return FreshTime::kAsUsual;
  if (fresh.size() < kFreshForReplay) return FreshTime::kLonger;
  // The neighbours tell a busy moment from a slow program; the median of all keeps
  // who computes now and then from hiding behind a neighbour that was computed.
  const double limit = kMargin * Median(usual);
  const bool is_replayed =
      std::all_of(fresh.begin(), fresh.end(), [limit](const FreshExecution& execution) {
        return execution.seconds > std::max(limit, kMargin * execution.neighbour_seconds);
      });
  return is_replayed ? FreshTime::kReplayed : FreshTime::kLonger;
}

}  // namespace mtmc::worker
