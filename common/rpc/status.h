// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/rpc/error.h"

namespace grpc {
class Status;
}

namespace mtmc::rpc {

// Conversions that keep code, message and every payload, which travel as
// google.rpc.Status in the trailing metadata (grpc-status-details-bin). Nothing
// else in mtmc converts.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace mtmc::rpc
