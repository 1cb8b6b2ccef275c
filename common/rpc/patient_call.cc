// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/patient_call.h"

#include <algorithm>
#include <random>
#include <string>

#include "absl/synchronization/mutex.h"
#include "common/rpc/error.h"

namespace mtmc::rpc {

absl::Status PatientCall::operator()(const std::function<absl::Status()>& call) const {
  const absl::Time give_up = clock_.Now() + options_.patience;
  std::minstd_rand random(std::random_device{}());
  absl::Duration wait = options_.first_wait;
  while (true) {
    const absl::Status status = call();
    const std::string reason = ErrorReason(status);
    const bool is_refused_unseen =
        reason == "OVERLOADED" || reason == "SHUTTING_DOWN" || reason == "REQUEST_RATE_EXCEEDED";
    if (!is_refused_unseen) return status;
    // Between half and all of it, so that clients that were refused together part.
    const absl::Duration own = wait * std::uniform_real_distribution<double>(0.5, 1.0)(random);
    const absl::Time next = clock_.Now() + std::max(own, RetryDelay(status));
    if (next > give_up) return status;
    WaitUntil(next);
    wait = std::min(2 * wait, options_.max_wait);
  }
}

void PatientCall::WaitUntil(absl::Time time) const {
  // Private to this call: nothing signals it, the clock ends the wait.
  absl::Mutex mu;
  absl::CondVar never;
  absl::MutexLock lock(&mu);
  while (clock_.Now() < time) clock_.Wait(never, mu, time);
}

}  // namespace mtmc::rpc
