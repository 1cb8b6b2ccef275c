// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/gateway/api_key.h"
#include "server/gateway/chat_model.h"
#include "server/gateway/http_client.h"

namespace mtmc::gateway {

// Any server of the OpenAI chat completions protocol: one request, one reply,
// no streaming, no retry.
class OpenAiChatModel final : public ChatModel {
 public:
  struct Options {
    // Up to and including the version, such as `https://api.openai.com/v1`.
    std::string base_url;
    ApiKey key;
    HttpLimits limits;
  };

  // INVALID_ARGUMENT when the base URL is not usable.
  static absl::StatusOr<std::unique_ptr<OpenAiChatModel>> Create(Options options);

  absl::StatusOr<ChatReply> Complete(const ChatRequest& request, absl::Time deadline) override;

 private:
  OpenAiChatModel(Url url, ApiKey key, HttpLimits limits);

  const Url url_;
  const ApiKey key_;
  const HttpLimits limits_;
};

// The body of a request and the reading of a reply, for tests and fuzzing.
std::string ToOpenAiJson(const ChatRequest& request);
// DATA_LOSS when `body` is no chat completion.
absl::StatusOr<ChatReply> FromOpenAiJson(const std::string& body);

}  // namespace mtmc::gateway
