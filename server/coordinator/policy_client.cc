// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "mtmc/v1/policy.grpc.pb.h"
#include "server/coordinator/call_set.h"
#include "server/coordinator/clients.h"
#include "server/coordinator/coordinator_metrics.h"

namespace mtmc::coordinator {
namespace {

class PolicyClient final : public search::MacroPolicy {
 public:
  PolicyClient(const std::string& endpoint, CoordinatorMetrics& metrics,
               const rpc::ChannelSecurity& security, absl::Duration timeout)
      : metrics_(metrics),
        channel_(rpc::MakeChannel(endpoint, {.retries_unavailable = false, .security = security})),
        stub_(v1::PolicyService::NewStub(channel_)),
        calls_(timeout) {}

  void ChooseAction(search::Asked<v1::ChooseActionRequest> request,
                    search::Done<v1::ChooseActionResponse> done) override {
    const absl::Time start = absl::Now();
    calls_.Start(
        std::move(request),
        search::Done<v1::ChooseActionResponse>(
            [this, start, done = std::move(done)](absl::StatusOr<v1::ChooseActionResponse> answer) {
              if (answer.ok()) metrics_.ObservePolicy(absl::Now() - start);
              done(std::move(answer));
            }),
        [this](auto... arguments) { stub_->async()->ChooseAction(std::move(arguments)...); });
  }

 private:
  CoordinatorMetrics& metrics_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::PolicyService::Stub> stub_;
  // Last, so that it ends first.
  CallSet calls_;
};

}  // namespace

std::unique_ptr<search::MacroPolicy> ConnectToPolicy(const std::string& endpoint,
                                                     CoordinatorMetrics& metrics,
                                                     const rpc::ChannelSecurity& security,
                                                     absl::Duration timeout) {
  return std::make_unique<PolicyClient>(endpoint, metrics, security, timeout);
}

}  // namespace mtmc::coordinator
