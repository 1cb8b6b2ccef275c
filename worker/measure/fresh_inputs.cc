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

// Of samples that are far faster, and how many of them make a mode: a fifth of the samples.
constexpr double kFastRatio = 1 / kMargin;
constexpr double kModeShare = 0.2;
// Below these, chance makes modes.
constexpr size_t kMinModeSamples = 10;
// That an honest program is convicted of one.
constexpr double kModeChance = 1e-6;

double FastShare(std::span<const double> seconds, double limit) {
  const auto fast =
      std::count_if(seconds.begin(), seconds.end(), [limit](double one) { return one < limit; });
  return static_cast<double>(fast) / static_cast<double>(seconds.size());
}

}  // namespace

double FreshSlowdown(std::span<const FreshExecution> fresh, std::span<const double> usual) {
  MTMC_CHECK(!fresh.empty() && !usual.empty());
  std::vector<double> seconds;
  for (const FreshExecution& execution : fresh) seconds.push_back(execution.seconds);
  return Median(seconds) / Median(usual);
}

double FastLimit(std::span<const double> usual) { return kFastRatio * Median(usual); }

bool HasFastMode(std::span<const double> usual) {
  return usual.size() >= kMinModeSamples && FastShare(usual, FastLimit(usual)) >= kModeShare;
}

bool IsFastOnKnownInputsOnly(std::span<const FreshExecution> fresh, std::span<const double> usual) {
  const double limit = FastLimit(usual);
  double chance = 1;
  for (const FreshExecution& execution : fresh) {
    if (execution.seconds < limit) return false;
    // As if the fresh one had been drawn of all in its block.
    const auto others = static_cast<double>(execution.neighbours.size());
    const double fast = others > 0 ? FastShare(execution.neighbours, limit) * others : 0;
    chance *= 1 - fast / (others + 1);
  }
  return chance <= kModeChance;
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
