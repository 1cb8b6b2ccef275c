// SPDX-License-Identifier: Apache-2.0

// The service over a real server and channel, with a coder that is a fake model
// under the real LlmCoder.

#include "server/gateway/gateway_service.h"

#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>

#include "absl/time/clock.h"
#include "common/base/executor.h"
#include "common/metrics/metrics.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/micro_coding.grpc.pb.h"
#include "server/gateway/coding_proto.h"
#include "server/gateway/fake_chat_model.h"
#include "server/gateway/llm_coder.h"

namespace mtmc::gateway {
namespace {

using testing::IsOk;
using testing::StatusIs;

constexpr char kProgram[] =
    "//@ mtmc 1 opencl\n//@ output y f32[4]\n//@ launch f grid=1 block=4 args=(y)\n"
    "__kernel void f(__global float* y) { y[get_global_id(0)] = 1.0f; }\n";

// A running gateway with the one coder `llm`, and a client of it.
class Gateway {
 public:
  Gateway() : coder_(model, nullptr, {.default_model = "m"}), executor_({.name = "test"}) {
    service_ = MakeGatewayService({{&coder_, &executor_}}, registry);
    auto server = rpc::RpcServer::Create({.services = {service_.get()}});
    REQUIRE_THAT(server.status(), IsOk());
    server_ = *std::move(server);
    stub_ = v1::MicroCodingService::NewStub(rpc::MakeChannel(server_->address()));
  }

  ~Gateway() { server_->Shutdown(absl::Now() + absl::Seconds(5)); }

  // Calls `method` of the stub.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::MicroCodingService::Stub::*method)(
                                    grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    grpc::ClientContext context;
    rpc::SetDeadline(context, absl::Now() + absl::Seconds(20));
    Response response;
    const absl::Status status = rpc::FromGrpc((stub_.get()->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  FakeChatModel model;
  metrics::Registry registry{"test"};

 private:
  LlmCoder coder_;
  base::Executor executor_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<rpc::RpcServer> server_;
  std::unique_ptr<v1::MicroCodingService::Stub> stub_;
};

using Stub = v1::MicroCodingService::Stub;

v1::ApplyActionRequest MakeApplyRequest() {
  v1::ApplyActionRequest request;
  request.mutable_context()->set_dialect(v1::DIALECT_OPENCL);
  request.mutable_program()->set_text(kProgram);
  request.mutable_action()->set_type(v1::Action::TYPE_VECTORIZE);
  request.mutable_action()->set_text("vectorize loads and stores of f");
  return request;
}

TEST_CASE("The gateway applies an action", "[gateway]") {
  Gateway gateway;
  gateway.model.Push(ChatReply{
      .text = std::string("```\n") + kProgram + "```", .input_tokens = 7, .model = "m-1"});

  const auto response = gateway.Call(&Stub::ApplyAction, MakeApplyRequest());

  REQUIRE_THAT(response.status(), IsOk());
  CHECK(response->program().text() == kProgram);
  CHECK_FALSE(response->has_coder_failure());
  CHECK(response->token_use().input_tokens() == 7);
}

TEST_CASE("The gateway answers a failed coder with a value", "[gateway]") {
  Gateway gateway;
  gateway.model.Push(ChatReply{.text = "rubbish"});

  const auto response = gateway.Call(&Stub::ApplyAction, MakeApplyRequest());

  REQUIRE_THAT(response.status(), IsOk());
  CHECK(response->coder_failure().reason() == "REPLY_NOT_PARSED");
  CHECK_FALSE(response->has_program());
  CHECK_THAT(gateway.registry.Render(), Catch::Matchers::Contains("outcome=\"REPLY_NOT_PARSED\""));
}

TEST_CASE("The gateway lists actions with stop last", "[gateway]") {
  Gateway gateway;
  v1::ListActionsRequest request;
  request.mutable_context()->set_dialect(v1::DIALECT_OPENCL);
  request.mutable_program()->set_text(kProgram);

  const auto response = gateway.Call(&Stub::ListActions, request);

  REQUIRE_THAT(response.status(), IsOk());
  REQUIRE(response->actions_size() > 2);
  CHECK(response->actions(0).type() == v1::Action::TYPE_TILE);
  CHECK(response->actions(0).region().kernels(0) == "f");
  CHECK(response->actions(response->actions_size() - 1).type() == v1::Action::TYPE_STOP);
}

TEST_CASE("The gateway names the coders that it has", "[gateway]") {
  Gateway gateway;

  const auto response = gateway.Call(&Stub::ListCoders, v1::ListCodersRequest());

  REQUIRE_THAT(response.status(), IsOk());
  REQUIRE(response->coders_size() == 1);
  CHECK(response->coders(0).name() == "llm");
}

TEST_CASE("The gateway refuses an unknown coder", "[gateway]") {
  Gateway gateway;
  v1::ApplyActionRequest request = MakeApplyRequest();
  request.mutable_context()->set_coder("oracle");

  const absl::Status status = gateway.Call(&Stub::ApplyAction, request).status();

  CHECK_THAT(status, StatusIs(absl::StatusCode::kNotFound, "configured: llm"));
  CHECK(rpc::ErrorReason(status) == "CODER_NOT_FOUND");
}

TEST_CASE("The gateway refuses requests that make no sense", "[gateway]") {
  Gateway gateway;
  v1::ApplyActionRequest request = MakeApplyRequest();

  SECTION("no dialect") {
    request.mutable_context()->clear_dialect();
    CHECK(rpc::ErrorReason(gateway.Call(&Stub::ApplyAction, request).status()) ==
          "CODING_CONTEXT_INVALID");
  }
  SECTION("a broken graph") {
    request.mutable_context()->mutable_graph()->add_inputs()->set_name("1");
    CHECK(rpc::ErrorReason(gateway.Call(&Stub::ApplyAction, request).status()) ==
          "CODING_CONTEXT_INVALID");
  }
  SECTION("no action") {
    request.mutable_action()->clear_type();
    CHECK(rpc::ErrorReason(gateway.Call(&Stub::ApplyAction, request).status()) == "ACTION_INVALID");
  }
}

TEST_CASE("An evaluation tells a coder what went wrong", "[gateway]") {
  v1::Evaluation evaluation;
  evaluation.mutable_failure()->set_kind(v1::Failure::KIND_COMPILE);
  evaluation.mutable_failure()->set_stage(v1::STAGE_BUILD);
  evaluation.mutable_failure()->set_message("does not compile");
  evaluation.mutable_failure()->set_diagnostics("line 3: undeclared");

  const Feedback feedback = FromProto(evaluation);

  CHECK(feedback.outcome == Feedback::Outcome::kBuildFailed);
  CHECK(feedback.text == "failed in build: does not compile\nline 3: undeclared\n");
  CHECK(FromProto(v1::Evaluation()).outcome == Feedback::Outcome::kNone);
}

TEST_CASE("An action survives the way to its proto", "[gateway]") {
  const CodingAction action = {.type = "fix_build",
                               .kernels = {"f"},
                               .first_line = 2,
                               .last_line = 3,
                               .arguments = {{"precision", "tf32"}},
                               .text = "fix the build"};

  const absl::StatusOr<CodingAction> copy = FromProto(ToProto(action));

  REQUIRE_THAT(copy.status(), IsOk());
  CHECK(copy->type == "fix_build");
  CHECK(copy->arguments == action.arguments);
  CHECK(copy->last_line == 3);
}

}  // namespace
}  // namespace mtmc::gateway
