// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace mtmc::testing {

// A clock that stands still until Advance(). Waiters whose deadline is reached
// wake at once. Thread-safe.
class FakeClock final : public base::Clock {
 public:
  explicit FakeClock(absl::Time now = absl::FromUnixSeconds(1'700'000'000)) : now_(now) {}

  absl::Time Now() const override;
  absl::Duration Uptime() const override;
  void Wait(absl::CondVar& changed, absl::Mutex& mu, absl::Time deadline) override;

  // Moves the time forward and wakes every waiter, which then looks again.
  void Advance(absl::Duration duration);

  // Sets Now(), as an operator or a time server does; nobody is woken.
  void Set(absl::Time now);

  // Blocks in real time until `count` threads are inside Wait(): the moment at
  // which Advance() is certain to be seen by them.
  void AwaitWaiters(int count);

 private:
  mutable absl::Mutex mu_;
  absl::Time now_ ABSL_GUARDED_BY(mu_);
  absl::Duration uptime_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
  // The condition variables waited on, once per waiting thread.
  std::vector<absl::CondVar*> waiters_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::testing
