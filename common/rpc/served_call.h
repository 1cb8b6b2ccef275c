// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace grpc::experimental {
class ServerInterceptorFactoryInterface;
}

namespace mtmc::rpc {

// A call that a server has answered. A value.
struct ServedCall {
  // `mtmc.v1.JobService` and `GetJob`.
  std::string service;
  std::string method;
  // CANCELLED where the client went before the answer.
  absl::StatusCode code = absl::StatusCode::kOk;
  // From the call's arrival to its status; of a stream, all of it.
  absl::Duration duration;
};

// Hears of every call at its end, on gRPC's threads; must not block.
using OnServedCall = std::function<void(const ServedCall&)>;

// What makes a server of gRPC tell `on_call`.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallObserver(
    OnServedCall on_call);

}  // namespace mtmc::rpc
