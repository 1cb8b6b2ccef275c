// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <limits>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/retry_rule.h"

namespace mtmc::rpc {

// Calls a service again while it refuses calls that it has not begun (IsRefusedUnseen): any
// call may be made again then. Waits in between as RetryRule says, and gives up with the last
// answer when the next try would be after `patience`. Blocks. A value.
class PatientCall {
 public:
  struct Options {
    // As long as people watch a command line that does not answer.
    absl::Duration patience = absl::Seconds(60);
    RetryRule::Options retry = {};
    // The call does no harm when it is made twice: it is also made again when it ended as
    // UNAVAILABLE for any other reason.
    bool repeats_unavailable = false;
    int max_calls = std::numeric_limits<int>::max();
  };

  // `clock` is borrowed.
  PatientCall(base::Clock& clock, const Options& options) : clock_(clock), options_(options) {}

  absl::Status operator()(const std::function<absl::Status()>& call) const;

 private:
  bool MayRepeat(const absl::Status& status) const;
  void WaitUntil(absl::Time time) const;

  base::Clock& clock_;
  Options options_;
};

}  // namespace mtmc::rpc
