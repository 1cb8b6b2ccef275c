// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace mtmc::rpc {

// When a call that failed is made again: not before the service asks for it
// (google.rpc.RetryInfo), and after a pause that doubles each time. Every client of ours that
// calls again waits as it says, so that none is a burden to a service that is full:
//
//   RetryRule retry({});
//   while (absl::Status status = call(); MayRepeat(status)) Wait(retry.PauseAfter(status));
//
// Whether a call may be made again is the caller's to know. A value; thread-compatible.
class RetryRule {
 public:
  struct Options {
    absl::Duration first_pause = absl::Milliseconds(100);
    absl::Duration max_pause = absl::Seconds(5);
  };

  // Ours ask for seconds. One that asks for hours has a fault, and is tried meanwhile.
  static constexpr absl::Duration kMostAsked = absl::Minutes(5);

  explicit RetryRule(const Options& options);

  // From the end of a call with `status` to the next one. Its own pause, between half and all of
  // what is due, so that clients that were refused together part; or what the service asks for,
  // if that is longer.
  absl::Duration PauseAfter(const absl::Status& status);

  // A call went well: the next pause is the first one again.
  void Reset() { pause_ = options_.first_pause; }

 private:
  Options options_;
  absl::Duration pause_;
  std::minstd_rand random_;
};

// Whether the service has not begun the call, so that any may be made again: it is full
// (OVERLOADED), asked too often by this caller (REQUEST_RATE_EXCEEDED), or stops
// (SHUTTING_DOWN).
bool IsRefusedUnseen(const absl::Status& status);

}  // namespace mtmc::rpc
