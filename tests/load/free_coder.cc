// SPDX-License-Identifier: Apache-2.0
#include "tests/load/free_coder.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"

namespace mtmc::load {
namespace {

// About as many as the engine offers for a program of several kernels.
constexpr int kActions = 30;

// For a coder that answers within the call.
template <class Response, class Ask>
grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, Response& response,
                                const Ask& ask) {
  absl::StatusOr<Response> answer = absl::InternalError("not answered");
  ask([&answer](absl::StatusOr<Response> result) { answer = std::move(result); });
  if (answer.ok()) response = *std::move(answer);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(answer.status()));
  return reactor;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FreeCoder>> FreeCoder::Create(const std::string& address) {
  auto coder = std::make_unique<FreeCoder>();
  MTMC_ASSIGN_OR_RETURN(coder->server_,
                        rpc::RpcServer::Create({.address = address, .services = {coder.get()}}));
  return coder;
}

grpc::ServerUnaryReactor* FreeCoder::CreateProgram(grpc::CallbackServerContext* context,
                                                   const v1::CreateProgramRequest* request,
                                                   v1::CreateProgramResponse* response) {
  return Serve(context, *response, [&](auto done) {
    coder_.CreateProgram(std::make_shared<const v1::CreateProgramRequest>(*request),
                         std::move(done));
  });
}

grpc::ServerUnaryReactor* FreeCoder::ListActions(grpc::CallbackServerContext* context,
                                                 const v1::ListActionsRequest* /*request*/,
                                                 v1::ListActionsResponse* response) {
  for (int size = 0; size < kActions; ++size) {
    auto* action = response->add_actions();
    action->set_type(v1::Action::TYPE_TILE);
    action->set_text(absl::StrCat("tile ", size));
  }
  response->add_actions()->set_type(v1::Action::TYPE_STOP);
  response->mutable_actions(kActions)->set_text("stop");
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* FreeCoder::ApplyAction(grpc::CallbackServerContext* context,
                                                 const v1::ApplyActionRequest* request,
                                                 v1::ApplyActionResponse* response) {
  return Serve(context, *response, [&](auto done) {
    coder_.ApplyAction(std::make_shared<const v1::ApplyActionRequest>(*request), std::move(done));
  });
}

}  // namespace mtmc::load
