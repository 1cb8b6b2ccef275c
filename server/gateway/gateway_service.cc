// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/gateway_service.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/executor.h"
#include "common/base/status_macros.h"
#include "common/metrics/metrics.h"
#include "common/rpc/error.h"
#include "common/rpc/unary.h"
#include "mtmc/v1/micro_coding.grpc.pb.h"
#include "server/gateway/coding_proto.h"
#include "server/gateway/micro_coder.h"

namespace mtmc::gateway {
namespace {

absl::StatusOr<CodingTask> TaskOf(const v1::CodingContext& context, const rpc::Call& call) {
  MTMC_ASSIGN_OR_RETURN(CodingTask task, FromProto(context));
  task.deadline = call.deadline();
  return task;
}

// A result as the response of CreateProgram or ApplyAction.
template <typename Response>
Response ToResponse(const CodingResult& result) {
  Response response;
  if (const auto* program = std::get_if<CodedProgram>(&result.outcome)) {
    *response.mutable_program() = ToProto(*program);
  } else {
    *response.mutable_coder_failure() = ToProto(std::get<CoderFailure>(result.outcome));
  }
  *response.mutable_token_use() = ToProto(result.token_use, result.exchange);
  if (result.exchange) *response.mutable_exchange() = ToProto(*result.exchange);
  return response;
}

class GatewayService final : public v1::MicroCodingService::CallbackService {
 public:
  GatewayService(std::vector<CoderSlot> coders, metrics::Registry& registry)
      : coders_(std::move(coders)),
        registry_(registry),
        budget_rejections_(registry.MakeCounter(
            "mtmc_budget_rejections_total",
            "Calls that were refused because a job's budget does not allow them.",
            {{"kind", "tokens"}})) {}

  grpc::ServerUnaryReactor* CreateProgram(grpc::CallbackServerContext* context,
                                          const v1::CreateProgramRequest* request,
                                          v1::CreateProgramResponse* response) override {
    return Serve(context, *request, *response, "CreateProgram",
                 [](MicroCoder& coder, const v1::CreateProgramRequest& message,
                    const rpc::Call& call) -> absl::StatusOr<v1::CreateProgramResponse> {
                   MTMC_ASSIGN_OR_RETURN(const CodingTask task, TaskOf(message.context(), call));
                   MTMC_ASSIGN_OR_RETURN(const CodingResult result, coder.CreateProgram(task));
                   return ToResponse<v1::CreateProgramResponse>(result);
                 });
  }

  grpc::ServerUnaryReactor* ApplyAction(grpc::CallbackServerContext* context,
                                        const v1::ApplyActionRequest* request,
                                        v1::ApplyActionResponse* response) override {
    return Serve(context, *request, *response, "ApplyAction",
                 [](MicroCoder& coder, const v1::ApplyActionRequest& message,
                    const rpc::Call& call) -> absl::StatusOr<v1::ApplyActionResponse> {
                   MTMC_ASSIGN_OR_RETURN(const CodingTask task, TaskOf(message.context(), call));
                   MTMC_ASSIGN_OR_RETURN(const CodingAction action, FromProto(message.action()));
                   MTMC_ASSIGN_OR_RETURN(
                       const CodingResult result,
                       coder.ApplyAction(task, FromProto(message.program()), action,
                                         FromProto(message.evaluation())));
                   return ToResponse<v1::ApplyActionResponse>(result);
                 });
  }

  grpc::ServerUnaryReactor* ListActions(grpc::CallbackServerContext* context,
                                        const v1::ListActionsRequest* request,
                                        v1::ListActionsResponse* response) override {
    return Serve(context, *request, *response, "ListActions",
                 [](MicroCoder& coder, const v1::ListActionsRequest& message,
                    const rpc::Call& call) -> absl::StatusOr<v1::ListActionsResponse> {
                   MTMC_ASSIGN_OR_RETURN(const CodingTask task, TaskOf(message.context(), call));
                   MTMC_ASSIGN_OR_RETURN(const std::vector<CodingAction> actions,
                                         coder.ListActions(task, FromProto(message.program()),
                                                           FromProto(message.evaluation())));
                   v1::ListActionsResponse listed;
                   for (const CodingAction& action : actions)
                     *listed.add_actions() = ToProto(action);
                   return listed;
                 });
  }

  grpc::ServerUnaryReactor* ListCoders(grpc::CallbackServerContext* context,
                                       const v1::ListCodersRequest*,
                                       v1::ListCodersResponse* response) override {
    std::vector<CoderSlot> sorted = coders_;
    std::sort(sorted.begin(), sorted.end(), [](const CoderSlot& a, const CoderSlot& b) {
      return a.coder->name() < b.coder->name();
    });
    for (const CoderSlot& slot : sorted) {
      v1::ListCodersResponse::Coder& coder = *response->add_coders();
      coder.set_name(slot.coder->name());
      coder.set_description(slot.coder->description());
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  // Runs `function` for the coder that the request names.
  template <typename Request, typename Response, typename Function>
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, const Request& request,
                                  Response& response, const char* method, Function function) {
    const CoderSlot* slot = FindCoder(request.context().coder());
    base::Executor& executor = slot != nullptr ? *slot->executor : *coders_.front().executor;
    return rpc::ServeUnary(
        context, request, response, executor,
        [this, slot, method, function](const Request& message,
                                       const rpc::Call& call) -> absl::StatusOr<Response> {
          if (slot == nullptr) return CoderNotFound(message.context().coder());
          absl::StatusOr<Response> result = function(*slot->coder, message, call);
          Count(slot->coder->name(), method, result);
          return result;
        });
  }

  const CoderSlot* FindCoder(const std::string& name) const {
    if (name.empty()) return &coders_.front();
    const auto it = std::find_if(coders_.begin(), coders_.end(),
                                 [&](const CoderSlot& slot) { return slot.coder->name() == name; });
    return it == coders_.end() ? nullptr : &*it;
  }

  absl::Status CoderNotFound(const std::string& name) const {
    std::string known;
    for (const CoderSlot& slot : coders_) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", slot.coder->name());
    }
    return rpc::MakeError(
        absl::StatusCode::kNotFound, "CODER_NOT_FOUND",
        absl::StrCat("coder '", name, "' is not configured here; configured: ", known),
        {{"coder", name}});
  }

  template <typename Response>
  void Count(const std::string& coder, const char* method, const absl::StatusOr<Response>& result) {
    std::string outcome = "error";
    if (result.ok()) outcome = "ok";
    if constexpr (requires(const Response& response) { response.has_coder_failure(); }) {
      if (result.ok() && result->has_coder_failure()) outcome = result->coder_failure().reason();
    }
    registry_
        .MakeCounter("mtmc_coder_requests_total",
                     "Calls of coders: ok, error, or why the coder gave no program.",
                     {{"coder", coder}, {"method", method}, {"outcome", outcome}})
        .Increment();
    if (rpc::ErrorReason(result.status()) == "TOKEN_BUDGET_EXHAUSTED") {
      budget_rejections_.Increment();
    }
  }

  const std::vector<CoderSlot> coders_;
  metrics::Registry& registry_;
  const metrics::Counter budget_rejections_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGatewayService(const std::vector<CoderSlot>& coders,
                                                  metrics::Registry& registry) {
  return std::make_unique<GatewayService>(coders, registry);
}

}  // namespace mtmc::gateway
