// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/patient_call.h"

#include "absl/synchronization/mutex.h"

namespace mtmc::rpc {

absl::Status PatientCall::operator()(const std::function<absl::Status()>& call) const {
  const absl::Time give_up = clock_.Now() + options_.patience;
  RetryRule retry(options_.retry);
  for (int calls = 1;; ++calls) {
    const absl::Status status = call();
    if (!MayRepeat(status) || calls >= options_.max_calls) return status;
    const absl::Time next = clock_.Now() + retry.PauseAfter(status);
    if (next > give_up) return status;
    WaitUntil(next);
  }
}

bool PatientCall::MayRepeat(const absl::Status& status) const {
  return IsRefusedUnseen(status) || (options_.repeats_unavailable && absl::IsUnavailable(status));
}

void PatientCall::WaitUntil(absl::Time time) const {
  // Private to this call: nothing signals it, the clock ends the wait.
  absl::Mutex mu;
  absl::CondVar never;
  absl::MutexLock lock(&mu);
  while (clock_.Now() < time) clock_.Wait(never, mu, time);
}

}  // namespace mtmc::rpc
