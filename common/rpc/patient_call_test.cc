// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/patient_call.h"

#include <catch2/catch.hpp>

#include "common/rpc/error.h"
#include "common/testing/leaping_clock.h"
#include "common/testing/status_matchers.h"

namespace mtmc::rpc {
namespace {

using testing::IsOk;
using testing::LeapingClock;

absl::Status Full() {
  return MakeError(absl::StatusCode::kResourceExhausted, "OVERLOADED", "full");
}

TEST_CASE("PatientCall calls again while the service is full or stops", "[rpc]") {
  const absl::Status refusal =
      GENERATE(Full(), MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN", "stops"));
  LeapingClock clock;
  int calls = 0;

  const absl::Status status =
      PatientCall(clock, {})([&] { return ++calls < 4 ? refusal : absl::OkStatus(); });

  CHECK_THAT(status, IsOk());
  CHECK(calls == 4);
}

TEST_CASE("PatientCall waits as long as the service asks", "[rpc]") {
  LeapingClock clock;
  const absl::Time start = clock.Now();
  int calls = 0;

  const absl::Status status = PatientCall(clock, {})(
      [&] { return ++calls == 1 ? WithRetryDelay(Full(), absl::Seconds(7)) : absl::OkStatus(); });

  CHECK_THAT(status, IsOk());
  CHECK(clock.Now() - start == absl::Seconds(7));
}

TEST_CASE("PatientCall gives the last answer when its patience is over", "[rpc]") {
  LeapingClock clock;
  const absl::Time start = clock.Now();

  const absl::Status status =
      PatientCall(clock, {.patience = absl::Seconds(30)})([] { return Full(); });

  CHECK(ErrorReason(status) == "OVERLOADED");
  CHECK(clock.Now() - start <= absl::Seconds(30));
  CHECK(clock.Now() - start > absl::Seconds(20));
}

TEST_CASE("PatientCall does not repeat what was refused for another reason", "[rpc]") {
  const absl::Status refusal =
      GENERATE(absl::UnavailableError("no connection"), absl::ResourceExhaustedError("too large"),
               MakeError(absl::StatusCode::kNotFound, "JOB_NOT_FOUND", "no"), absl::OkStatus());
  LeapingClock clock;
  int calls = 0;

  const absl::Status status = PatientCall(clock, {})([&] {
    ++calls;
    return refusal;
  });

  CHECK(status == refusal);
  CHECK(calls == 1);
}

TEST_CASE("PatientCall repeats what does no harm when it is made twice", "[rpc]") {
  LeapingClock clock;
  int calls = 0;

  const absl::Status status = PatientCall(clock, {.repeats_unavailable = true})(
      [&] { return ++calls < 3 ? absl::UnavailableError("cut off") : absl::OkStatus(); });

  CHECK_THAT(status, IsOk());
  CHECK(calls == 3);
}

TEST_CASE("PatientCall makes no more calls than it is allowed", "[rpc]") {
  LeapingClock clock;
  int calls = 0;

  const absl::Status status = PatientCall(clock, {.max_calls = 4})([&] {
    ++calls;
    return Full();
  });

  CHECK(ErrorReason(status) == "OVERLOADED");
  CHECK(calls == 4);
}

}  // namespace
}  // namespace mtmc::rpc
