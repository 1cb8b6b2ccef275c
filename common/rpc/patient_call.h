// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace mtmc::rpc {

// Calls a service again while it is full (OVERLOADED), is asked too often
// (REQUEST_RATE_EXCEEDED) or stops (SHUTTING_DOWN): it has
// not begun the call then, so that any call may be made again. Waits as long as the
// service asks, otherwise twice as long each time, with jitter, and gives up with the
// last answer when the next try would be after `patience`. Blocks. A value.
class PatientCall {
 public:
  struct Options {
    // As long as people watch a command line that does not answer.
    absl::Duration patience = absl::Seconds(60);
    absl::Duration first_wait = absl::Milliseconds(100);
    absl::Duration max_wait = absl::Seconds(5);
  };

  // `clock` is borrowed.
  PatientCall(base::Clock& clock, const Options& options) : clock_(clock), options_(options) {}

  absl::Status operator()(const std::function<absl::Status()>& call) const;

 private:
  void WaitUntil(absl::Time time) const;

  base::Clock& clock_;
  Options options_;
};

}  // namespace mtmc::rpc
