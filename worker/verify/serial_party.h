// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// A party that several threads may call: one call after the other, each within its
// timeout but for the one that it waits for. Thread-safe.
template <typename Request, typename Response>
class SerialParty final : public Party<Request, Response> {
 public:
  // Borrows `party`, which nobody else may call.
  explicit SerialParty(Party<Request, Response>& party) : party_(party) {}

  Reply<Response> Call(const Request& request, absl::Duration timeout) override {
    const absl::Time deadline = absl::Now() + timeout;
    absl::MutexLock lock(&mu_);
    return party_.Call(request, deadline - absl::Now());
  }

 private:
  absl::Mutex mu_;
  Party<Request, Response>& party_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::worker
