// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/llm_coder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "kernel/graph/text.h"
#include "kernel/program/parser.h"
#include "server/gateway/program_actions.h"
#include "server/gateway/prompt.h"
#include "server/gateway/reply_parser.h"

namespace mtmc::gateway {
namespace {

// Of the caller's time, so that it gets our answer and not its own time-out.
constexpr absl::Duration kAnswerMargin = absl::Seconds(1);

CodingResult Fail(const char* reason, std::string message, TokenUse use = {}) {
  return {.outcome = CoderFailure{.reason = reason, .message = std::move(message)},
          .token_use = std::move(use)};
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// What a call without a reply costs: what the provider said; else nothing if it refused
// the request, and all that was reserved if it may have worked on it. Its bill is not
// known then, and a budget is a limit.
TokenUse BillOf(const absl::Status& status, const ChatRequest& request, const TokenPrices& prices) {
  const bool may_have_worked = absl::IsDeadlineExceeded(status) || absl::IsDataLoss(status);
  const ChatTokens reserved = {.input = EstimateTokens(request.messages),
                               .output = request.max_reply_tokens};
  const ChatTokens billed = TokensOf(status).value_or(may_have_worked ? reserved : ChatTokens());
  return {.input_tokens = billed.input,
          .output_tokens = billed.output,
          .model = request.model,
          .prompt_sha256 = DigestOf(request),
          .cost_micros = prices.CostMicros(billed)};
}

// A model that never answers or answers garbage has failed at its trial; a
// model that cannot be reached is the environment's fault.
absl::StatusOr<CodingResult> FromFailedCall(const absl::Status& status, const ChatRequest& request,
                                            const TokenPrices& prices) {
  const TokenUse bill = BillOf(status, request, prices);
  const auto fail = [&](const char* reason, const std::string& message) {
    CodingResult result = Fail(reason, message, bill);
    result.exchange = Exchange{.prompt = ToTranscript(request), .reply = ""};
    return result;
  };
  if (absl::IsDeadlineExceeded(status)) {
    return fail("REPLY_TIMEOUT", "the model did not reply in time: " + MessageOf(status));
  }
  if (absl::IsDataLoss(status)) return fail("REPLY_NOT_PARSED", MessageOf(status));
  if (absl::IsInvalidArgument(status)) return fail("REQUEST_REFUSED", MessageOf(status));
  std::string reason = rpc::ErrorReason(status);
  if (reason.empty() && absl::IsUnavailable(status)) reason = "CODER_UNAVAILABLE";
  std::map<std::string, std::string> metadata = rpc::ErrorMetadata(status);
  metadata["tokens"] = absl::StrCat(bill.input_tokens + bill.output_tokens);
  if (bill.cost_micros) metadata["cost_micros"] = absl::StrCat(*bill.cost_micros);
  return rpc::MakeError(status.code(), reason, MessageOf(status), metadata);
}

// Who asked which model, for whoever runs the gateway; never what was said.
void Report(const CodingTask& task, const ChatRequest& request, const absl::Status& status) {
  base::Log(base::LogLevel::kInfo, "asked a language model",
            {{"job", task.job},
             {"creator", task.creator},
             {"model", request.model},
             {"code", absl::StatusCodeToString(status.code())}});
}

// Whether the program is written in the language that was asked for.
CodingResult CheckDialect(CodingResult result, kernel::Dialect dialect) {
  const auto* program = std::get_if<CodedProgram>(&result.outcome);
  if (program == nullptr) return result;
  const kernel::ParseResult parsed = kernel::ParseProgram(program->text);
  if (parsed.program && parsed.program->dialect == dialect) return result;
  return Fail("REPLY_NOT_PARSED",
              kernel::Concat("the program is not written in ", kernel::ToText(dialect)),
              std::move(result.token_use));
}

}  // namespace

LlmCoder::LlmCoder(ChatModel& model, MicroCoder* starter, Options options)
    : model_(model), starter_(starter), options_(std::move(options)) {}

std::string LlmCoder::description() const {
  return options_.default_model.empty() ? "language model named by the request"
                                        : "language model, by default " + options_.default_model;
}

absl::StatusOr<CodingResult> LlmCoder::CreateProgram(const CodingTask& task) {
  if (starter_ != nullptr) {
    absl::StatusOr<CodingResult> result = starter_->CreateProgram(task);
    if (result.ok() && std::holds_alternative<CodedProgram>(result->outcome)) return result;
  }
  return Ask(task, MakeStartPrompt(task));
}

absl::StatusOr<CodingResult> LlmCoder::ApplyAction(const CodingTask& task,
                                                   const CodedProgram& program,
                                                   const CodingAction& action,
                                                   const Feedback& feedback) {
  if (action.type == "stop" || action.type.empty()) {
    return Fail("ILLEGAL_ACTION", "`stop` ends the search; it is nothing to apply");
  }
  return Ask(task, MakeActionPrompt(task, program, action, feedback));
}

absl::StatusOr<std::vector<CodingAction>> LlmCoder::ListActions(const CodingTask& task,
                                                                const CodedProgram& program,
                                                                const Feedback& feedback) {
  if (starter_ != nullptr && !program.schedule.empty()) {
    return starter_->ListActions(task, program, feedback);
  }
  return ListProgramActions(task, program.text, feedback);
}

absl::StatusOr<ChatRequest> LlmCoder::MakeRequest(const CodingTask& task,
                                                  std::vector<ChatMessage> messages) const {
  ChatRequest request{.model = task.model.empty() ? options_.default_model : task.model,
                      .messages = std::move(messages),
                      .temperature = options_.temperature,
                      .seed = task.seed};
  if (request.model.empty()) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "MODEL_NOT_SET",
                          "name a model in the job, or start the gateway with --model");
  }
  const int64_t limit =
      task.max_tokens > 0 ? std::min(task.max_tokens, options_.max_tokens) : options_.max_tokens;
  const int64_t prompt_tokens = EstimateTokens(request.messages);
  const int64_t left = limit - prompt_tokens;
  if (left < options_.min_reply_tokens) {
    const std::string message = absl::StrCat("the prompt takes about ", prompt_tokens, " of ",
                                             limit, " tokens, which leaves no room for a program");
    // Another step may have a shorter prompt; what the task has left only shrinks.
    if (limit == options_.max_tokens) return absl::InvalidArgumentError(message);
    return rpc::MakeError(absl::StatusCode::kResourceExhausted, "TOKEN_BUDGET_EXHAUSTED", message);
  }
  request.max_reply_tokens = std::min(left, options_.max_reply_tokens);
  return request;
}

absl::StatusOr<CodingResult> LlmCoder::Ask(const CodingTask& task,
                                           std::vector<ChatMessage> messages) {
  const absl::StatusOr<ChatRequest> made = MakeRequest(task, std::move(messages));
  if (!made.ok() && rpc::ErrorReason(made.status()).empty()) {
    return Fail("PROMPT_TOO_LONG", MessageOf(made.status()));
  }
  if (!made.ok()) return made.status();
  const ChatRequest& request = *made;
  const absl::Time deadline =
      std::min(task.deadline - kAnswerMargin, absl::Now() + options_.total_timeout);
  const absl::StatusOr<ChatReply> reply = model_.Complete(request, deadline);
  Report(task, request, reply.status());
  if (!reply.ok()) return FromFailedCall(reply.status(), request, options_.prices);
  CodingResult result = CheckDialect(ParseReply(reply->text, reply->is_cut), task.device.dialect);
  result.token_use = {.input_tokens = reply->input_tokens,
                      .output_tokens = reply->output_tokens,
                      .model = reply->model,
                      .prompt_sha256 = DigestOf(request),
                      .cost_micros = options_.prices.CostMicros(
                          {.input = reply->input_tokens, .output = reply->output_tokens})};
  result.exchange = Exchange{.prompt = ToTranscript(request), .reply = reply->text};
  return result;
}

}  // namespace mtmc::gateway
