// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/metered_chat_model.h"

#include <utility>
#include <vector>

#include "common/trace/span.h"

namespace mtmc::gateway {
namespace {

// From a refusal to the longest time that a call may take.
std::vector<double> CallBuckets() {
  return {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600};
}

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
                                   metrics::Registry& registry, TokenPrices prices)
    : inner_(std::move(inner)), clock_(clock), registry_(registry), prices_(prices) {}

absl::StatusOr<ChatReply> MeteredChatModel::Complete(const ChatRequest& request,
                                                     absl::Time deadline) {
  const std::string model = models_.Of(request.model);
  trace::Span span = trace::Span::Start("chat " + model, {.kind = trace::SpanKind::kClient});
  const absl::Time start = clock_.Now();
  absl::StatusOr<ChatReply> reply = inner_->Complete(request, deadline);
  registry_
      .MakeHistogram("mtmc_llm_request_duration_seconds",
                     "Time of a request to a language model, retries included.", CallBuckets(),
                     {{"model", model}})
      .Observe(absl::ToDoubleSeconds(clock_.Now() - start));
  registry_
      .MakeCounter("mtmc_llm_requests_total", "Requests to language models, by outcome.",
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
  span.Set("gen_ai.operation.name", "chat");
  span.Set("gen_ai.request.model", model);
  span.Set("gen_ai.usage.input_tokens", billed.input);
  span.Set("gen_ai.usage.output_tokens", billed.output);
  if (!reply.ok()) span.Fail(OutcomeOf(reply.status()));
  if (const auto cost_micros = prices_.CostMicros(billed)) {
    registry_
        .MakeCounter("mtmc_llm_cost_usd_total", "Tokens as billed, times the prices of the flags.",
                     {{"model", model}})
        .Increment(1e-6 * static_cast<double>(*cost_micros));
  }
  return reply;
}

}  // namespace mtmc::gateway
