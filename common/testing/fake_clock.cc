// SPDX-License-Identifier: Apache-2.0
#include "common/testing/fake_clock.h"

#include <algorithm>

namespace mtmc::testing {

absl::Time FakeClock::Now() const {
  absl::MutexLock lock(&mu_);
  return now_;
}

absl::Duration FakeClock::Uptime() const {
  absl::MutexLock lock(&mu_);
  return uptime_;
}

void FakeClock::Set(absl::Time now) {
  absl::MutexLock lock(&mu_);
  now_ = now;
}

void FakeClock::Wait(absl::CondVar& changed, absl::Mutex& mu, absl::Time deadline) {
  {
    absl::MutexLock lock(&mu_);
    if (now_ >= deadline) return;
    waiters_.push_back(&changed);
  }
  // Advance() may run here, before the wait begins; the short real time-out
  // makes that a spurious wake instead of a hang.
  changed.WaitWithTimeout(&mu, absl::Milliseconds(20));
  absl::MutexLock lock(&mu_);
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &changed));
}

void FakeClock::Advance(absl::Duration duration) {
  absl::MutexLock lock(&mu_);
  now_ += duration;
  uptime_ += duration;
  for (absl::CondVar* waiter : waiters_) waiter->SignalAll();
}

void FakeClock::AwaitWaiters(int count) {
  absl::MutexLock lock(&mu_);
  const auto is_reached = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return static_cast<int>(waiters_.size()) >= count;
  };
  mu_.Await(absl::Condition(&is_reached));
}

}  // namespace mtmc::testing
