// SPDX-License-Identifier: Apache-2.0
#include "policy/service/policy_service.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "mtmc/v1/policy.grpc.pb.h"
#include "policy/rules/search_state_proto.h"

namespace mtmc::policy {
namespace {

// `RESOURCE_EXHAUSTED` to `resource_exhausted`.
std::string OutcomeLabel(const absl::Status& status) {
  return absl::AsciiStrToLower(absl::StatusCodeToString(status.code()));
}

// Gives a policy's bare status the reason that clients act on.
absl::Status WithReason(const absl::Status& status) {
  if (status.ok()) return status;
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return rpc::MakeError(status.code(), "INVALID_SEARCH_STATE", message);
    case absl::StatusCode::kOutOfRange:
      return rpc::MakeError(status.code(), "SEARCH_STATE_TOO_LARGE", message);
    case absl::StatusCode::kResourceExhausted:
      return rpc::MakeError(status.code(), "OVERLOADED", message);
    default:
      return status;
  }
}

class PolicyServiceAdapter final : public v1::PolicyService::CallbackService {
 public:
  PolicyServiceAdapter(std::vector<Policy*> policies, metrics::Registry& registry)
      : policies_(std::move(policies)), registry_(registry) {}

  grpc::ServerUnaryReactor* ChooseAction(grpc::CallbackServerContext* context,
                                         const v1::ChooseActionRequest* request,
                                         v1::ChooseActionResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    Policy* const policy = Find(request->policy());
    if (policy == nullptr) {
      reactor->Finish(rpc::ToGrpc(NotFound(request->policy())));
      return reactor;
    }
    absl::StatusOr<Query> query = FromProto(*request);
    if (!query.ok()) {
      reactor->Finish(rpc::ToGrpc(Counted(*policy, WithReason(query.status()))));
      return reactor;
    }
    query->deadline = rpc::FromGrpcDeadline(context->deadline());
    // gRPC keeps request and response until the reactor is finished.
    policy->Decide(*std::move(query), [this, policy, request, response, reactor,
                                       start = absl::Now()](absl::StatusOr<Distribution> result) {
      Observe(*policy, absl::Now() - start);
      base::Log(
          base::LogLevel::kDebug, "chose an action",
          {{"job", request->job()}, {"creator", request->creator()}, {"policy", policy->name()}});
      if (result.ok()) Answer(*policy, *result, *request, *response);
      reactor->Finish(rpc::ToGrpc(Counted(*policy, WithReason(result.status()))));
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* ListPolicies(grpc::CallbackServerContext* context,
                                         const v1::ListPoliciesRequest*,
                                         v1::ListPoliciesResponse* response) override {
    for (const Policy* policy : policies_) {
      v1::ListPoliciesResponse::Policy* const listed = response->add_policies();
      listed->set_name(policy->name());
      listed->set_model_digest(policy->model_digest());
      listed->set_description(policy->description());
    }
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  Policy* Find(const std::string& name) const {
    if (name.empty()) return policies_.front();
    for (Policy* policy : policies_) {
      if (policy->name() == name) return policy;
    }
    return nullptr;
  }

  static absl::Status NotFound(const std::string& name) {
    return rpc::MakeError(
        absl::StatusCode::kNotFound, "POLICY_NOT_FOUND",
        absl::StrCat("policy \"", name, "\" is not loaded; ListPolicies names those that are"),
        {{"policy", name}});
  }

  void Answer(const Policy& policy, const Distribution& distribution,
              const v1::ChooseActionRequest& request, v1::ChooseActionResponse& response) const {
    response = ToProto(distribution, request.seed());
    response.set_policy(policy.name());
    response.set_model_digest(policy.model_digest());
  }

  void Observe(const Policy& policy, absl::Duration duration) const {
    registry_
        .MakeHistogram("mtmc_policy_inference_seconds",
                       "Time from a request to its distribution, waiting included.",
                       metrics::SecondsBuckets(), {{"policy", policy.name()}})
        .Observe(absl::ToDoubleSeconds(duration));
  }

  // The status as it came, counted.
  absl::Status Counted(const Policy& policy, const absl::Status& status) const {
    registry_
        .MakeCounter("mtmc_policy_requests_total",
                     "Requests that a policy has answered: ok, or the code of the error.",
                     {{"policy", policy.name()}, {"outcome", OutcomeLabel(status)}})
        .Increment();
    return status;
  }

  // Constant after construction.
  const std::vector<Policy*> policies_;
  metrics::Registry& registry_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePolicyService(std::vector<Policy*> policies,
                                                 metrics::Registry& registry) {
  return std::make_unique<PolicyServiceAdapter>(std::move(policies), registry);
}

}  // namespace mtmc::policy
