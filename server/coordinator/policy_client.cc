// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/error.h"
#include "common/rpc/retry_rule.h"
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
    if (const absl::Status refusal = Refusal(); !refusal.ok()) return done(refusal);
    const absl::Time start = absl::Now();
    calls_.Start(
        std::move(request),
        search::Done<v1::ChooseActionResponse>(
            [this, start, done = std::move(done)](absl::StatusOr<v1::ChooseActionResponse> answer) {
              if (answer.ok()) metrics_.ObservePolicy(absl::Now() - start);
              Heed(answer.status());
              done(std::move(answer));
            }),
        [this](auto... arguments) { stub_->async()->ChooseAction(std::move(arguments)...); });
  }

 private:
  // What the service said last when it asked for a pause that is not over; OK if there is none.
  absl::Status Refusal() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return absl::Now() < pause_end_ ? refusal_ : absl::OkStatus();
  }

  void Heed(const absl::Status& answer) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::Duration asked = std::min(rpc::RetryDelay(answer), rpc::RetryRule::kMostAsked);
    if (asked == absl::ZeroDuration()) return;
    absl::MutexLock lock(&mu_);
    refusal_ = answer;
    pause_end_ = absl::Now() + asked;
  }

  absl::Mutex mu_;
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);
  absl::Time pause_end_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();

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
