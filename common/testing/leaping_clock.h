// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace mtmc::testing {

// A clock on which waiting takes no time. For one thread.
class LeapingClock final : public base::Clock {
 public:
  absl::Time Now() const override { return now_; }

  absl::Duration Uptime() const override { return now_ - kStart; }

  void Wait(absl::CondVar&, absl::Mutex&, absl::Time deadline) override { now_ = deadline; }

 private:
  static constexpr absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

  absl::Time now_ = kStart;
};

}  // namespace mtmc::testing
