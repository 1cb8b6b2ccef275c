// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/metered_chat_model.h"

#include <utility>

#include "common/metrics/metrics.h"

namespace mtmc::gateway {
namespace {

// More than any job uses; a metric's series stay in memory for ever.
constexpr size_t kMaxModels = 20;

const char* OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return "ok";
    case absl::StatusCode::kDeadlineExceeded:
      return "timeout";
    case absl::StatusCode::kUnavailable:
      return "unavailable";
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return "refused";
    case absl::StatusCode::kDataLoss:
      return "garbled";
    default:
      return "failed";
  }
}

}  // namespace

MeteredChatModel::MeteredChatModel(std::unique_ptr<ChatModel> inner, base::Clock& clock,
                                   metrics::Registry& registry)
    : inner_(std::move(inner)), clock_(clock), registry_(registry) {}

absl::StatusOr<ChatReply> MeteredChatModel::Complete(const ChatRequest& request,
                                                     absl::Time deadline) {
  const std::string model = LabelOf(request.model);
  const absl::Time start = clock_.Now();
  absl::StatusOr<ChatReply> reply = inner_->Complete(request, deadline);
  registry_
      .MakeHistogram("mtmc_llm_request_duration_seconds", "Time of a request, retries included.",
                     metrics::SecondsBuckets(), {{"model", model}})
      .Observe(absl::ToDoubleSeconds(clock_.Now() - start));
  registry_
      .MakeCounter("mtmc_llm_requests_total", "Requests to language models.",
                   {{"model", model}, {"outcome", OutcomeOf(reply.status())}})
      .Increment();
  const ChatTokens billed =
      reply.ok() ? ChatTokens{.input = reply->input_tokens, .output = reply->output_tokens}
                 : TokensOf(reply.status()).value_or(ChatTokens());
  const auto count = [&](const char* type, int64_t tokens) {
    registry_
        .MakeCounter("mtmc_llm_tokens_total", "Tokens as billed.",
                     {{"model", model}, {"type", type}})
        .Increment(static_cast<double>(tokens));
  };
  count("input", billed.input);
  count("output", billed.output);
  return reply;
}

std::string MeteredChatModel::LabelOf(const std::string& model) {
  absl::MutexLock lock(&mu_);
  if (models_.size() < kMaxModels) models_.insert(model);
  return models_.count(model) > 0 ? model : "other";
}

}  // namespace mtmc::gateway
