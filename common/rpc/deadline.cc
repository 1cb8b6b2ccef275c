// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/deadline.h"

#include <grpcpp/client_context.h>

namespace mtmc::rpc {

void SetDeadline(grpc::ClientContext& context, absl::Time deadline) {
  // gRPC reads the largest time point as "none".
  context.set_deadline(deadline == absl::InfiniteFuture()
                           ? std::chrono::system_clock::time_point::max()
                           : absl::ToChronoTime(deadline));
}

absl::Time FromGrpcDeadline(std::chrono::system_clock::time_point deadline) {
  return deadline == std::chrono::system_clock::time_point::max() ? absl::InfiniteFuture()
                                                                  : absl::FromChrono(deadline);
}

}  // namespace mtmc::rpc
