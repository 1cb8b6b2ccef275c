// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/deadline.h"

#include <grpc/support/time.h>
#include <grpcpp/client_context.h>

#include <cstdint>

#include "absl/time/clock.h"

namespace mtmc::rpc {

// By the clock that nobody sets, from here on. What gRPC makes of a time of the wall clock is
// when it comes by the clock of that moment, which may not be the one that absl::Now() has read:
// that one lags some seconds behind a clock that was set.
void SetDeadline(grpc::ClientContext& context, absl::Time deadline) {
  // An infinite duration becomes the largest number, and gRPC reads that as "none".
  const int64_t left = absl::ToInt64Nanoseconds(deadline - absl::Now());
  context.set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(left, GPR_TIMESPAN)));
}

absl::Time FromGrpcDeadline(std::chrono::system_clock::time_point deadline) {
  return deadline == std::chrono::system_clock::time_point::max() ? absl::InfiniteFuture()
                                                                  : absl::FromChrono(deadline);
}

}  // namespace mtmc::rpc
