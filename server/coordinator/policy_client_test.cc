// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/metrics/metrics.h"
#include "common/rpc/error.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/policy.grpc.pb.h"
#include "server/coordinator/clients.h"
#include "server/coordinator/coordinator_metrics.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;

constexpr absl::Duration kAsked = absl::Milliseconds(500);

// Refuses the first call, and asks for a pause.
class FullPolicy final : public v1::PolicyService::Service {
 public:
  grpc::Status ChooseAction(grpc::ServerContext*, const v1::ChooseActionRequest*,
                            v1::ChooseActionResponse*) override {
    if (++calls > 1) return grpc::Status::OK;
    return rpc::ToGrpc(rpc::WithRetryDelay(
        rpc::MakeError(absl::StatusCode::kResourceExhausted, "OVERLOADED", "full"), kAsked));
  }

  std::atomic<int> calls = 0;
};

absl::Status Choose(search::MacroPolicy& policy) {
  absl::Notification is_done;
  absl::Status status;
  policy.ChooseAction(std::make_shared<v1::ChooseActionRequest>(),
                      [&](const absl::StatusOr<v1::ChooseActionResponse>& answer) {
                        status = answer.status();
                        is_done.Notify();
                      });
  is_done.WaitForNotification();
  return status;
}

TEST_CASE("The policy service is not called while it asks for a pause", "[coordinator]") {
  FullPolicy service;
  auto server = rpc::RpcServer::Create({.address = "127.0.0.1:0", .services = {&service}});
  REQUIRE_THAT(server.status(), IsOk());
  metrics::Registry registry("test");
  CoordinatorMetrics metrics(registry);
  const auto policy = ConnectToPolicy((*server)->address(), metrics);
  const absl::Time start = absl::Now();

  CHECK(rpc::ErrorReason(Choose(*policy)) == "OVERLOADED");
  absl::Status status = Choose(*policy);
  while (!status.ok()) {
    REQUIRE(rpc::ErrorReason(status) == "OVERLOADED");
    std::this_thread::yield();
    status = Choose(*policy);
  }

  CHECK(service.calls == 2);
  CHECK(absl::Now() - start >= kAsked);
}

}  // namespace
}  // namespace mtmc::coordinator
