// SPDX-License-Identifier: Apache-2.0
#include "policy/service/policy_service.h"

#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>

#include "absl/time/clock.h"
#include "common/metrics/metrics.h"
#include "common/rpc/deadline.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "mtmc/v1/policy.grpc.pb.h"
#include "policy/model/fake_action_scorer.h"
#include "policy/rules/rules_policy.h"
#include "policy/service/lm_policy.h"

namespace mtmc::policy {
namespace {

// Both policies behind a server on a free port, and a stub to it.
struct Service {
  Service() {
    auto created = rpc::RpcServer::Create({.address = "127.0.0.1:0", .services = {service.get()}});
    REQUIRE(created.ok());
    server = *std::move(created);
    stub = v1::PolicyService::NewStub(
        grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  }

  absl::StatusOr<v1::ChooseActionResponse> Choose(const v1::ChooseActionRequest& request) {
    grpc::ClientContext context;
    rpc::SetDeadline(context, absl::Now() + absl::Seconds(20));
    v1::ChooseActionResponse response;
    const absl::Status status = rpc::FromGrpc(stub->ChooseAction(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  RulesPolicy rules;
  LmPolicy lm{std::make_unique<FakeActionScorer>(), {.max_batch = 1}};
  metrics::Registry registry{"policy-service-test"};
  std::unique_ptr<grpc::Service> service = MakePolicyService({&rules, &lm}, registry);
  std::unique_ptr<rpc::RpcServer> server;
  std::unique_ptr<v1::PolicyService::Stub> stub;
};

v1::ChooseActionRequest Request(const std::string& policy) {
  v1::ChooseActionRequest request;
  request.set_policy(policy);
  for (const auto& [type, text] :
       {std::pair(v1::Action::TYPE_STOP, "stop"), {v1::Action::TYPE_VECTORIZE, "vectorize gelu"}}) {
    v1::Action* const action = request.add_actions();
    action->set_type(type);
    action->set_text(text);
  }
  return request;
}

TEST_CASE("PolicyService answers with a distribution over the actions", "[policy]") {
  Service service;
  const std::string policy = GENERATE(std::string("rules"), std::string("lm"));

  const auto response = service.Choose(Request(policy));

  REQUIRE(response.ok());
  CHECK(response->policy() == policy);
  REQUIRE(response->probabilities_size() == 2);
  CHECK_THAT(response->probabilities(0) + response->probabilities(1),
             Catch::Matchers::WithinAbs(1.0, 1e-12));
  CHECK(response->token_counts_size() == (policy == "lm" ? 2 : 0));
}

TEST_CASE("PolicyService takes its first policy by default", "[policy]") {
  Service service;

  const auto response = service.Choose(Request(""));

  REQUIRE(response.ok());
  CHECK(response->policy() == "rules");
}

TEST_CASE("PolicyService gives a reason with each refusal", "[policy]") {
  Service service;
  v1::ChooseActionRequest no_action;

  const absl::Status unknown = service.Choose(Request("oracle")).status();
  const absl::Status empty = service.Choose(no_action).status();

  CHECK(unknown.code() == absl::StatusCode::kNotFound);
  CHECK(rpc::ErrorReason(unknown) == "POLICY_NOT_FOUND");
  CHECK(empty.code() == absl::StatusCode::kInvalidArgument);
  CHECK(rpc::ErrorReason(empty) == "INVALID_SEARCH_STATE");
}

TEST_CASE("PolicyService counts its answers by policy and outcome", "[policy]") {
  Service service;
  v1::ChooseActionRequest request = Request("rules");
  request.mutable_actions()->DeleteSubrange(0, 1);

  REQUIRE(service.Choose(request).ok());
  request.clear_actions();
  REQUIRE_FALSE(service.Choose(request).ok());

  const std::string text = service.registry.Render();
  CHECK(text.find("mtmc_policy_requests_total{outcome=\"ok\",policy=\"rules\"} 1") != text.npos);
  CHECK(text.find("mtmc_policy_requests_total{outcome=\"invalid_argument\",policy=\"rules\"} 1") !=
        text.npos);
}

TEST_CASE("PolicyService lists its policies with their digests", "[policy]") {
  Service service;
  grpc::ClientContext context;
  v1::ListPoliciesResponse response;

  REQUIRE(service.stub->ListPolicies(&context, {}, &response).ok());

  REQUIRE(response.policies_size() == 2);
  CHECK(response.policies(0).name() == "rules");
  CHECK(response.policies(1).model_digest().size() == 64);
}

}  // namespace
}  // namespace mtmc::policy
