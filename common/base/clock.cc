// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace mtmc::base {

absl::Time RealClock::Now() const { return absl::Now(); }

absl::Duration RealClock::Uptime() const {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

void RealClock::Wait(absl::CondVar& changed, absl::Mutex& mu, absl::Time deadline) {
  changed.WaitWithDeadline(&mu, deadline);
}

}  // namespace mtmc::base
