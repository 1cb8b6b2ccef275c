// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/open_ai_chat_model.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"

namespace mtmc::gateway {
namespace {

using Json = nlohmann::json;

// What a provider says about an error, cut to a length fit for one log line.
std::string ErrorText(const std::string& body) {
  constexpr size_t kMaxBytes = 300;
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  std::string text = body;
  if (json.is_object() && json.contains("error")) {
    const Json& error = json["error"];
    const bool has_message =
        error.is_object() && error.contains("message") && error["message"].is_string();
    text = has_message ? error["message"].get<std::string>()
                       : error.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text.substr(0, kMaxBytes);
}

int64_t TokensOf(const Json& usage, const char* name) {
  if (!usage.is_object()) return 0;
  const auto it = usage.find(name);
  return it != usage.end() && it->is_number_integer() ? std::max<int64_t>(it->get<int64_t>(), 0)
                                                      : 0;
}

// What the provider says that it bills; nothing where it does not say.
std::optional<ChatTokens> UsageOf(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto usage = json.find("usage");
  if (usage == json.end() || !usage->is_object()) return std::nullopt;
  return ChatTokens{.input = TokensOf(*usage, "prompt_tokens"),
                    .output = TokensOf(*usage, "completion_tokens")};
}

std::optional<ChatTokens> UsageOf(const std::string& body) {
  return UsageOf(Json::parse(body, nullptr, /*allow_exceptions=*/false));
}

// Whether this one request is at fault (too long, say), and another may be served.
bool IsAboutRequest(int http_status) {
  return http_status == 400 || http_status == 413 || http_status == 422;
}

// What whoever runs the gateway can do.
const char* AdviceFor(int http_status) {
  switch (http_status) {
    case 401:
      return "; check the key in the gateway's --api-key-file or OPENAI_API_KEY";
    case 402:
      return "; the account of the gateway's key has no credit";
    case 403:
      return "; the gateway's key may not use this model";
    case 404:
      return "; check the name of the model and the gateway's --base-url";
    default:
      return "";
  }
}

absl::Status ToStatus(const HttpResponse& response, const ApiKey& key) {
  const std::string message =
      absl::StrCat("the model's server answered ", response.status, ": ",
                   // Redacted before it is cut, so that no half of a key is left.
                   ErrorText(key.Redact(response.body)));
  if (IsAboutRequest(response.status)) {
    return WithTokens(absl::InvalidArgumentError(message), UsageOf(response.body));
  }
  if (response.status != 429 && response.status < 500) {
    return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "CODER_REFUSED",
                          absl::StrCat(message, AdviceFor(response.status)));
  }
  std::map<std::string, std::string> metadata = {{"http_status", absl::StrCat(response.status)}};
  int64_t seconds = 0;
  if (absl::SimpleAtoi(response.retry_after, &seconds) && seconds >= 0) {
    metadata["retry_after_seconds"] = absl::StrCat(seconds);
  }
  return WithTokens(
      rpc::MakeError(absl::StatusCode::kUnavailable, "CODER_UNAVAILABLE", message, metadata),
      UsageOf(response.body));
}

absl::Status NoCompletion(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the reply is no chat completion: ", what));
}

// A completion that cannot be read, but says what it cost.
absl::Status NoCompletion(const std::string& what, const Json& json) {
  return WithTokens(NoCompletion(what), UsageOf(json));
}

}  // namespace

std::string ToOpenAiJson(const ChatRequest& request) {
  Json messages = Json::array();
  ChatMessage::Role last_role = ChatMessage::Role::kSystem;
  for (const ChatMessage& message : request.messages) {
    // Chat templates of local models refuse two messages of one role in a row.
    if (!messages.empty() && message.role == last_role) {
      std::string text = messages.back()["content"].get<std::string>();
      messages.back()["content"] = text + "\n\n" + message.text;
      continue;
    }
    last_role = message.role;
    const char* role = message.role == ChatMessage::Role::kSystem ? "system" : "user";
    messages.push_back({{"role", role}, {"content", message.text}});
  }
  const Json body = {{"model", request.model},
                     {"messages", std::move(messages)},
                     {"max_tokens", request.max_reply_tokens},
                     {"temperature", request.temperature},
                     {"seed", request.seed},
                     {"stream", false}};
  // Sources may hold any bytes; the wire holds UTF-8.
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<ChatReply> FromOpenAiJson(const std::string& body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return NoCompletion("not a JSON object");
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->empty())
    return NoCompletion("no choices", json);
  const Json& choice = choices->front();
  if (!choice.is_object() || !choice.contains("message") || !choice["message"].is_object()) {
    return NoCompletion("no message", json);
  }
  ChatReply reply;
  const auto content = choice["message"].find("content");
  // A refusal or a reply that was all reasoning has null content.
  if (content != choice["message"].end() && content->is_string()) {
    reply.text = content->get<std::string>();
  }
  const auto finish = choice.find("finish_reason");
  reply.is_cut = finish != choice.end() && *finish == "length";
  const ChatTokens tokens = UsageOf(json).value_or(ChatTokens());
  reply.input_tokens = tokens.input;
  reply.output_tokens = tokens.output;
  const auto model = json.find("model");
  if (model != json.end() && model->is_string()) reply.model = model->get<std::string>();
  return reply;
}

absl::StatusOr<std::unique_ptr<OpenAiChatModel>> OpenAiChatModel::Create(Options options) {
  MTMC_ASSIGN_OR_RETURN(Url url, ParseUrl(options.base_url));
  url.path += "/chat/completions";
  return std::unique_ptr<OpenAiChatModel>(
      new OpenAiChatModel(std::move(url), std::move(options.key), options.limits));
}

OpenAiChatModel::OpenAiChatModel(Url url, ApiKey key, HttpLimits limits)
    : url_(std::move(url)), key_(std::move(key)), limits_(limits) {}

absl::StatusOr<ChatReply> OpenAiChatModel::Complete(const ChatRequest& request,
                                                    absl::Time deadline) {
  if (absl::Now() >= deadline) {
    return WithTokens(absl::DeadlineExceededError("out of time before asking"), ChatTokens());
  }
  std::map<std::string, std::string> headers;
  if (!key_.is_empty()) headers["Authorization"] = key_.AuthorizationHeader();
  MTMC_ASSIGN_OR_RETURN(HttpResponse response,
                        PostJson(url_, headers, ToOpenAiJson(request), limits_, deadline));
  if (response.status != 200) return ToStatus(response, key_);
  MTMC_ASSIGN_OR_RETURN(ChatReply reply, FromOpenAiJson(response.body));
  reply.text = key_.Redact(std::move(reply.text));
  reply.model = key_.Redact(std::move(reply.model));
  if (reply.model.empty()) reply.model = request.model;
  return reply;
}

}  // namespace mtmc::gateway
