// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/loss_odds.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mtmc::coordinator {
namespace {

// Long enough to see a slow rate, short enough that a bad hour is over with it.
constexpr absl::Duration kHalfLife = absl::Minutes(10);

// Assumed before anything was seen: one loss a minute. With it, three short runs
// (p of a second's run 1/60, product 5e-6) are nearly enough to judge by.
constexpr double kPriorLosses = 1;
constexpr double kPriorSeconds = 60;

}  // namespace

void LossOdds::Advance(absl::Time now, int workers) {
  const absl::Time last = std::exchange(now_, now);
  if (last == absl::InfinitePast()) return;
  losses_ *= Weight(last);
  worker_seconds_ = worker_seconds_ * Weight(last) + absl::ToDoubleSeconds(now - last) * workers;
}

void LossOdds::CountLoss() { losses_ += 1; }

double LossOdds::ByChance(const std::vector<RunLoss>& losses) const {
  LossOdds others = *this;
  others.Discount(losses);
  const double rate = (others.losses_ + kPriorLosses) / (others.worker_seconds_ + kPriorSeconds);
  double odds = 1;
  for (const RunLoss& loss : losses) odds *= -std::expm1(-rate * absl::ToDoubleSeconds(loss.run));
  return odds;
}

void LossOdds::Discount(const std::vector<RunLoss>& losses) {
  for (const RunLoss& loss : losses) losses_ -= Weight(loss.time);
  losses_ = std::max(losses_, 0.0);
}

// What is left by now of something that counted 1 at `time`.
double LossOdds::Weight(absl::Time time) const {
  return std::exp2(-absl::FDivDuration(now_ - time, kHalfLife));
}

}  // namespace mtmc::coordinator
