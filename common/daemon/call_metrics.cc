// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/call_metrics.h"

#include <memory>
#include <string>

#include "common/metrics/metrics.h"

namespace mtmc::daemon {
namespace {

// More than all services of a daemon have. Names come from clients, who may make some up.
constexpr size_t kMaxMethods = 60;

}  // namespace

rpc::OnServedCall CountCalls(metrics::Registry& registry) {
  auto methods = std::make_shared<metrics::BoundedLabel>(kMaxMethods);
  return [&registry, methods](const rpc::ServedCall& call) {
    const std::string full = call.service + "/" + call.method;
    const bool is_known = methods->Of(full) == full;
    const std::string service = is_known ? call.service : "other";
    const std::string method = is_known ? call.method : "other";
    registry
        .MakeCounter("grpc_server_handled_total", "Calls of gRPC that were answered, by code.",
                     {{"grpc_service", service},
                      {"grpc_method", method},
                      {"grpc_code", absl::StatusCodeToString(call.code)}})
        .Increment();
    registry
        .MakeHistogram("grpc_server_handling_seconds",
                       "Time from the arrival of a call of gRPC to its status.",
                       metrics::SecondsBuckets(),
                       {{"grpc_service", service}, {"grpc_method", method}})
        .Observe(absl::ToDoubleSeconds(call.duration));
  };
}

}  // namespace mtmc::daemon
