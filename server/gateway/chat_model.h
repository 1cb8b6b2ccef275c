// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mtmc::gateway {

// One message of a conversation.
struct ChatMessage {
  enum class Role { kSystem, kUser };
  Role role = Role::kUser;
  std::string text;
  // Differs between two runs of the same job (measured times). The model sees
  // it; the digest that recordings are keyed by leaves it out.
  bool is_volatile = false;
};

struct ChatRequest {
  std::string model;
  std::vector<ChatMessage> messages;
  // Most tokens of the reply, reasoning included.
  int64_t max_reply_tokens = 16'384;
  double temperature = 0.6;
  int64_t seed = 0;
};

struct ChatReply {
  // May be empty; may be anything.
  std::string text;
  // The model stopped because of `max_reply_tokens`.
  bool is_cut = false;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  // As the provider names it.
  std::string model;
};

// What a call costs, as the provider bills it.
struct ChatTokens {
  int64_t input = 0;
  int64_t output = 0;
};

// The error of a call that was billed all the same. Without `tokens` it is `status`.
absl::Status WithTokens(absl::Status status, std::optional<ChatTokens> tokens);

// What WithTokens added.
std::optional<ChatTokens> TokensOf(const absl::Status& status);

// Equal for requests that should have the same reply: SHA-256 over everything
// but volatile messages and the token limit, which follows from their length.
std::string DigestOf(const ChatRequest& request);

// All that the model is told, for people and for training: a JSON list of messages with `role`
// and `content`, in UTF-8.
std::string ToTranscript(const ChatRequest& request);

// A language model that answers one conversation. Implementations and
// decorators are thread-safe and block until `deadline` at most.
//
// Fails with
//   UNAVAILABLE         unreachable, overloaded (429) or broken (5xx); metadata
//                       `retry_after_seconds` where the provider gave it;
//   DEADLINE_EXCEEDED   no complete reply in time;
//   DATA_LOSS           the reply is not of the protocol, cut off, or too large;
//   INVALID_ARGUMENT    the provider refuses this request (400, 413, 422);
//   FAILED_PRECONDITION the provider refuses all requests (other 4xx: a wrong key, an
//                       unknown model), or a recording has no reply for it.
// TokensOf an error says what the provider billed, where it said so.
// No message of an error holds a key.
class ChatModel {
 public:
  virtual ~ChatModel() = default;

  virtual absl::StatusOr<ChatReply> Complete(const ChatRequest& request, absl::Time deadline) = 0;
};

}  // namespace mtmc::gateway
