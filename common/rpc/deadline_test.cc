// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/deadline.h"

#include <grpc/support/time.h>
#include <grpcpp/client_context.h>

#include <catch2/catch.hpp>

#include "absl/time/clock.h"

namespace mtmc::rpc {
namespace {

// How long a call with that deadline has from now on, by the clock that nobody sets.
double SecondsLeft(absl::Time deadline) {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  const gpr_timespec set = context.raw_deadline();
  REQUIRE(set.clock_type == GPR_CLOCK_MONOTONIC);
  const gpr_timespec left = gpr_time_sub(set, gpr_now(GPR_CLOCK_MONOTONIC));
  return static_cast<double>(left.tv_sec);
}

TEST_CASE("A deadline that is given is not moved by a clock that is set", "[rpc]") {
  const double left = SecondsLeft(absl::Now() + absl::Hours(10));

  CHECK(left > 35'900);
  CHECK(left <= 36'000);
}

TEST_CASE("A deadline that has passed leaves no time", "[rpc]") {
  CHECK(SecondsLeft(absl::Now() - absl::Hours(1)) < 0);
}

TEST_CASE("A call without a deadline has none", "[rpc]") {
  grpc::ClientContext context;
  SetDeadline(context, absl::InfiniteFuture());

  CHECK(gpr_time_cmp(context.raw_deadline(), gpr_inf_future(GPR_CLOCK_MONOTONIC)) == 0);
  CHECK(FromGrpcDeadline(context.deadline()) == absl::InfiniteFuture());
}

}  // namespace
}  // namespace mtmc::rpc
