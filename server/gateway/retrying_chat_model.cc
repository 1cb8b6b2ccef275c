// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/retrying_chat_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "common/base/log.h"
#include "common/rpc/error.h"

namespace mtmc::gateway {

namespace {

// The outcome of the last attempt, with what those before it were billed.
absl::StatusOr<ChatReply> AddTokens(absl::StatusOr<ChatReply> reply, const ChatTokens& before) {
  if (before.input == 0 && before.output == 0) return reply;
  if (reply.ok()) {
    reply->input_tokens += before.input;
    reply->output_tokens += before.output;
    return reply;
  }
  const std::optional<ChatTokens> last = TokensOf(reply.status());
  // A bill that is not known is the caller's to estimate.
  const bool is_unknown = !last && !absl::IsUnavailable(reply.status());
  if (is_unknown) return reply;
  ChatTokens sum = last.value_or(ChatTokens());
  sum.input += before.input;
  sum.output += before.output;
  return WithTokens(reply.status(), sum);
}

}  // namespace

RetryingChatModel::RetryingChatModel(std::unique_ptr<ChatModel> inner, base::Clock& clock,
                                     Options options)
    : inner_(std::move(inner)), clock_(clock), options_(options), random_(std::random_device{}()) {}

absl::StatusOr<ChatReply> RetryingChatModel::Complete(const ChatRequest& request,
                                                      absl::Time deadline) {
  ChatTokens billed;
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<ChatReply> reply = AddTokens(inner_->Complete(request, deadline), billed);
    if (reply.ok() || !absl::IsUnavailable(reply.status())) return reply;
    const absl::Duration wait = WaitAfter(reply.status(), attempt);
    const absl::Time next = clock_.Now() + wait;
    if (attempt >= options_.max_attempts || wait > options_.max_wait || next >= deadline)
      return reply;
    billed = TokensOf(reply.status()).value_or(billed);
    base::Log(base::LogLevel::kWarning, "asking the model again",
              {{"model", request.model},
               {"attempt", attempt},
               {"wait_ms", absl::ToInt64Milliseconds(wait)},
               {"reason", reply.status()}});
    WaitUntil(next);
  }
}

absl::Duration RetryingChatModel::WaitAfter(const absl::Status& status, int attempt) {
  const std::map<std::string, std::string> metadata = rpc::ErrorMetadata(status);
  const auto it = metadata.find("retry_after_seconds");
  int64_t seconds = 0;
  if (it != metadata.end() && absl::SimpleAtoi(it->second, &seconds)) return absl::Seconds(seconds);
  const absl::Duration longest =
      std::min(options_.first_wait * (int64_t{1} << std::min(attempt - 1, 20)), options_.max_wait);
  absl::MutexLock lock(&mu_);
  // Between half and all of it, so that callers that failed together part.
  return longest * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
}

void RetryingChatModel::WaitUntil(absl::Time time) {
  // Private to this call: nothing signals it, the clock ends the wait.
  absl::Mutex mu;
  absl::CondVar never;
  absl::MutexLock lock(&mu);
  while (clock_.Now() < time) clock_.Wait(never, mu, time);
}

}  // namespace mtmc::gateway
