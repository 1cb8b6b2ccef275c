// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace mtmc::base {

// The time, and waiting for it, so that tests need not wait.
//
//   absl::MutexLock lock(&mu_);
//   while (!is_ready_ && clock.Now() < deadline) clock.Wait(cv_, mu_, deadline);
//
// Thread-safe. The fake is FakeClock of common/testing/fake_clock.h.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() const = 0;

  // Since a moment that stays the same as long as the process lives, by a clock that nobody
  // sets: for how long something takes, whatever becomes of Now().
  virtual absl::Duration Uptime() const = 0;

  // Blocks until `changed` is signalled or this clock reaches `deadline`; may
  // also wake for no reason, so the caller loops. `mu` is held on entry and on
  // return, and released in between.
  virtual void Wait(absl::CondVar& changed, absl::Mutex& mu, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;
};

// The wall clock of the host.
class RealClock final : public Clock {
 public:
  absl::Time Now() const override;
  absl::Duration Uptime() const override;
  void Wait(absl::CondVar& changed, absl::Mutex& mu, absl::Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
};

}  // namespace mtmc::base
