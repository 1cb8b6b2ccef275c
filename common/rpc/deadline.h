// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace grpc {
class ClientContext;
}

namespace mtmc::rpc {

// Gives a call a deadline. Every call of ours has one: without, a peer that
// hangs keeps the caller for ever. Once it is given, setting the clock of the host moves it no
// more.
void SetDeadline(grpc::ClientContext& context, absl::Time deadline);

// Deadlines as gRPC gives them on a server; "none" becomes InfiniteFuture().
absl::Time FromGrpcDeadline(std::chrono::system_clock::time_point deadline);

}  // namespace mtmc::rpc
