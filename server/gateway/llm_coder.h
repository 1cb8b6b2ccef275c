// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/gateway/chat_model.h"
#include "server/gateway/micro_coder.h"
#include "server/gateway/token_prices.h"

namespace mtmc::gateway {

// Lets a language model apply the actions. The start program comes from another
// coder where that has one (no tokens, correct by construction); the model
// writes it otherwise. Actions on a program with a schedule are listed by that
// coder too, on any other by ListProgramActions.
//
// Errors: UNAVAILABLE with reason CODER_UNAVAILABLE, FAILED_PRECONDITION with
// reason CODER_REFUSED or REPLAY_MISSING, RESOURCE_EXHAUSTED with reason
// TOKEN_BUDGET_EXHAUSTED when the prompt alone would use what the task has left,
// INVALID_ARGUMENT with reason MODEL_NOT_SET.
class LlmCoder final : public MicroCoder {
 public:
  struct Options {
    // For tasks that name no model; may be empty.
    std::string default_model;
    // Most tokens of one call, prompt and reply: a 30,000-token prompt and a
    // program of 2,000 lines fit.
    int64_t max_tokens = 64'000;
    // Most tokens of a reply, reasoning included.
    int64_t max_reply_tokens = 16'384;
    // A reply shorter than this cannot hold a program.
    int64_t min_reply_tokens = 512;
    double temperature = 0.6;
    absl::Duration total_timeout = absl::Seconds(300);
    TokenPrices prices;
  };

  // Both are borrowed; `starter` may be null.
  LlmCoder(ChatModel& model, MicroCoder* starter, Options options);

  std::string name() const override { return "llm"; }

  std::string description() const override;
  absl::StatusOr<CodingResult> CreateProgram(const CodingTask& task) override;
  absl::StatusOr<CodingResult> ApplyAction(const CodingTask& task, const CodedProgram& program,
                                           const CodingAction& action,
                                           const Feedback& feedback) override;
  absl::StatusOr<std::vector<CodingAction>> ListActions(const CodingTask& task,
                                                        const CodedProgram& program,
                                                        const Feedback& feedback) override;

 private:
  absl::StatusOr<CodingResult> Ask(const CodingTask& task, std::vector<ChatMessage> messages);
  absl::StatusOr<ChatRequest> MakeRequest(const CodingTask& task,
                                          std::vector<ChatMessage> messages) const;

  ChatModel& model_;
  MicroCoder* const starter_;
  const Options options_;
};

}  // namespace mtmc::gateway
