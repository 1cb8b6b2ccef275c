// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/chat_model.h"

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"

namespace mtmc::gateway {

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
    append(message.role == ChatMessage::Role::kSystem ? "system" : "user");
    append(message.text);
  }
  return builder.Finish().sha256_hex;
}

}  // namespace mtmc::gateway
