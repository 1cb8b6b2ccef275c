// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/time/time.h"

namespace mtmc::coordinator {

// A worker that was lost while it ran a piece of work.
struct RunLoss {
  // When it was found out.
  absl::Time time;
  // How long the work had run by then.
  absl::Duration run;
};

// Tells work that takes its workers down from workers that go down anyhow.
//
// Workers are lost at some rate whatever they do: hosts are preempted, processes
// killed. While work runs for t, that happens with 1 - exp(-rate t), and so for
// each of several losses: the product is how likely they all are by chance. A fleet
// that loses a worker a week finds a bad candidate after few losses, and one that is
// killed all the time spares a good one, without a setting for either.
//
// The rate is what the fleet showed lately, without the losses in question. A value;
// thread-compatible. Times must not go back.
class LossOdds {
 public:
  // `workers` were there since the last call.
  void Advance(absl::Time now, int workers);

  // A worker was lost, whatever it did.
  void CountLoss();

  // The odds that all `losses` of one piece of work came by chance.
  double ByChance(const std::vector<RunLoss>& losses) const;

  // The work is to blame for `losses`: they say nothing about the rate.
  void Discount(const std::vector<RunLoss>& losses);

 private:
  double Weight(absl::Time time) const;

  absl::Time now_ = absl::InfinitePast();
  // Both fade: what was an hour ago does not count.
  double losses_ = 0;
  double worker_seconds_ = 0;
};

}  // namespace mtmc::coordinator
