// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/retry_rule.h"

#include <catch2/catch.hpp>

#include "common/rpc/error.h"

namespace mtmc::rpc {
namespace {

absl::Status Full() {
  return MakeError(absl::StatusCode::kResourceExhausted, "OVERLOADED", "full");
}

TEST_CASE("RetryRule doubles its pause up to the longest", "[rpc]") {
  RetryRule retry({.first_pause = absl::Seconds(1), .max_pause = absl::Seconds(3)});

  for (const int due : {1, 2, 3, 3}) {
    const absl::Duration pause = retry.PauseAfter(Full());
    CHECK(pause >= absl::Seconds(due) / 2);
    CHECK(pause <= absl::Seconds(due));
  }
}

TEST_CASE("RetryRule begins anew after a call that went well", "[rpc]") {
  RetryRule retry({.first_pause = absl::Seconds(1), .max_pause = absl::Hours(1)});
  for (int i = 0; i < 5; ++i) retry.PauseAfter(Full());

  retry.Reset();

  CHECK(retry.PauseAfter(Full()) <= absl::Seconds(1));
}

TEST_CASE("RetryRule waits as long as the service asks", "[rpc]") {
  RetryRule retry({});

  CHECK(retry.PauseAfter(WithRetryDelay(Full(), absl::Seconds(7))) == absl::Seconds(7));
}

TEST_CASE("RetryRule asks no more often than its own pauses say", "[rpc]") {
  RetryRule retry({.first_pause = absl::Seconds(1)});

  CHECK(retry.PauseAfter(WithRetryDelay(Full(), absl::Nanoseconds(1))) >= absl::Milliseconds(500));
}

TEST_CASE("RetryRule tries a service now and then that asks for an age", "[rpc]") {
  RetryRule retry({});

  CHECK(retry.PauseAfter(WithRetryDelay(Full(), absl::Hours(9999))) == RetryRule::kMostAsked);
}

TEST_CASE("What a service refuses before it begins it is told by its reason", "[rpc]") {
  CHECK(IsRefusedUnseen(Full()));
  CHECK(IsRefusedUnseen(MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN", "stops")));
  CHECK(IsRefusedUnseen(
      MakeError(absl::StatusCode::kResourceExhausted, "REQUEST_RATE_EXCEEDED", "too often")));
  CHECK_FALSE(IsRefusedUnseen(absl::UnavailableError("no connection")));
  CHECK_FALSE(IsRefusedUnseen(
      MakeError(absl::StatusCode::kResourceExhausted, "TOKEN_BUDGET_EXHAUSTED", "no tokens")));
  CHECK_FALSE(IsRefusedUnseen(absl::OkStatus()));
}

}  // namespace
}  // namespace mtmc::rpc
