// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/rpc/served_call.h"

namespace mtmc::metrics {
class Registry;
}

namespace mtmc::daemon {

// Counts the calls of a server: `grpc_server_handled_total{grpc_service, grpc_method,
// grpc_code}` and `grpc_server_handling_seconds{grpc_service, grpc_method}`, the names
// that servers of other projects have. The registry is borrowed.
rpc::OnServedCall CountCalls(metrics::Registry& registry);

}  // namespace mtmc::daemon
