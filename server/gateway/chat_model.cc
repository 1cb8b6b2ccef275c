// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/chat_model.h"

#include <nlohmann/json.hpp>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/digest.h"

namespace mtmc::gateway {
namespace {

// Never leaves this process.
constexpr char kTokensUrl[] = "mtmc.dev/gateway.ChatTokens";

const char* RoleName(const ChatMessage& message) {
  return message.role == ChatMessage::Role::kSystem ? "system" : "user";
}

}  // namespace

absl::Status WithTokens(absl::Status status, std::optional<ChatTokens> tokens) {
  if (!status.ok() && tokens) {
    status.SetPayload(kTokensUrl, absl::Cord(absl::StrCat(tokens->input, " ", tokens->output)));
  }
  return status;
}

std::optional<ChatTokens> TokensOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kTokensUrl);
  if (!payload) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(std::string(*payload), ' ');
  ChatTokens tokens;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &tokens.input) ||
      !absl::SimpleAtoi(parts[1], &tokens.output)) {
    return std::nullopt;
  }
  return tokens;
}

std::string DigestOf(const ChatRequest& request) {
  base::Sha256Builder builder;
  // Each text is preceded by its length, so that no two requests run together.
  const auto append = [&builder](const std::string& text) {
    builder.Append(absl::StrCat(text.size(), ":"));
    builder.Append(text);
  };
  append(request.model);
  append(absl::StrCat(request.temperature, " ", request.seed));
  for (const ChatMessage& message : request.messages) {
    if (message.is_volatile) continue;
    append(RoleName(message));
    append(message.text);
  }
  return builder.Finish().sha256_hex;
}

std::string ToTranscript(const ChatRequest& request) {
  using Json = nlohmann::json;
  Json messages = Json::array();
  for (const ChatMessage& message : request.messages) {
    messages.push_back({{"role", RoleName(message)}, {"content", message.text}});
  }
  // Sources may hold any bytes.
  return messages.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mtmc::gateway
