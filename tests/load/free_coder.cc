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

// What a coder that answers within the call says; `response` is complete if it returns OK.
template <class Response, class Ask>
absl::Status Answer(Response& response, const Ask& ask) {
  absl::StatusOr<Response> answer = absl::InternalError("not answered");
  ask([&answer](absl::StatusOr<Response> result) { answer = std::move(result); });
  if (answer.ok()) response = *std::move(answer);
  return answer.status();
}

// A request that is gRPC's, for a coder that answers within the call.
template <class Request>
std::shared_ptr<const Request> Borrow(const Request& request) {
  return {std::shared_ptr<void>(), &request};
}

v1::ListActionsResponse AllActions() {
  v1::ListActionsResponse response;
  for (int size = 0; size < kActions; ++size) {
    auto* action = response.add_actions();
    action->set_type(v1::Action::TYPE_TILE);
    action->set_text(absl::StrCat("tile ", size));
  }
  response.add_actions()->set_type(v1::Action::TYPE_STOP);
  response.mutable_actions(kActions)->set_text("stop");
  return response;
}

grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context,
                                    const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FreeCoder>> FreeCoder::Create(const std::string& address,
                                                             absl::Duration mean_think) {
  auto coder = std::unique_ptr<FreeCoder>(new FreeCoder(mean_think));
  MTMC_ASSIGN_OR_RETURN(coder->server_,
                        rpc::RpcServer::Create({.address = address, .services = {coder.get()}}));
  return coder;
}

FreeCoder::~FreeCoder() {
  pacer_.Stop();
  absl::MutexLock lock(&mu_);
  is_ending_ = true;
  for (grpc::ServerUnaryReactor* thought : thoughts_) {
    thought->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coder stops"));
  }
  thoughts_.clear();
}

void FreeCoder::Think(grpc::ServerUnaryReactor* reactor) {
  absl::Duration think;
  {
    absl::MutexLock lock(&mu_);
    if (is_ending_) return reactor->Finish(grpc::Status::OK);
    think = std::uniform_real_distribution<double>(0.5, 1.5)(random_) * mean_think_;
    thoughts_.insert(reactor);
  }
  pacer_.After(think, [this, reactor] {
    absl::MutexLock lock(&mu_);
    thoughts_.erase(reactor);
    reactor->Finish(grpc::Status::OK);
  });
}

grpc::ServerUnaryReactor* FreeCoder::CreateProgram(grpc::CallbackServerContext* context,
                                                   const v1::CreateProgramRequest* request,
                                                   v1::CreateProgramResponse* response) {
  return FinishNow(context, Answer(*response, [&](auto done) {
                     coder_.CreateProgram(Borrow(*request), std::move(done));
                   }));
}

grpc::ServerUnaryReactor* FreeCoder::ListActions(grpc::CallbackServerContext* context,
                                                 const v1::ListActionsRequest* /*request*/,
                                                 v1::ListActionsResponse* response) {
  static const auto* const kResponse = new v1::ListActionsResponse(AllActions());
  *response = *kResponse;
  return FinishNow(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* FreeCoder::ApplyAction(grpc::CallbackServerContext* context,
                                                 const v1::ApplyActionRequest* request,
                                                 v1::ApplyActionResponse* response) {
  const absl::Status status =
      Answer(*response, [&](auto done) { coder_.ApplyAction(Borrow(*request), std::move(done)); });
  if (!status.ok() || mean_think_ == absl::ZeroDuration()) return FinishNow(context, status);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Think(reactor);
  return reactor;
}

}  // namespace mtmc::load
