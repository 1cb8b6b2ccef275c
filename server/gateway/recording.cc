// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/recording.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"

namespace mtmc::gateway {
namespace {

using Json = nlohmann::json;

std::string ToLine(const std::string& digest, const ChatReply& reply) {
  const Json json = {{"request", digest},
                     {"model", reply.model},
                     {"text", reply.text},
                     {"is_cut", reply.is_cut},
                     {"input_tokens", reply.input_tokens},
                     {"output_tokens", reply.output_tokens}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct RecordedReply {
  std::string digest;
  ChatReply reply;
};

std::optional<RecordedReply> FromLine(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto has = [&json](const char* key, bool (Json::*is)() const noexcept) {
    const auto it = json.find(key);
    return it != json.end() && ((*it).*is)();
  };
  if (!has("request", &Json::is_string) || !has("model", &Json::is_string) ||
      !has("text", &Json::is_string) || !has("is_cut", &Json::is_boolean) ||
      !has("input_tokens", &Json::is_number_integer) ||
      !has("output_tokens", &Json::is_number_integer)) {
    return std::nullopt;
  }
  return RecordedReply{.digest = json["request"].get<std::string>(),
                       .reply = {.text = json["text"].get<std::string>(),
                                 .is_cut = json["is_cut"].get<bool>(),
                                 .input_tokens = json["input_tokens"].get<int64_t>(),
                                 .output_tokens = json["output_tokens"].get<int64_t>(),
                                 .model = json["model"].get<std::string>()}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordingChatModel>> RecordingChatModel::Create(
    std::unique_ptr<ChatModel> inner, const std::filesystem::path& path) {
  std::ofstream stream(path, std::ios::binary | std::ios::app);
  if (!stream) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write the recording ", path.string()));
  }
  return std::unique_ptr<RecordingChatModel>(
      new RecordingChatModel(std::move(inner), std::move(stream)));
}

RecordingChatModel::RecordingChatModel(std::unique_ptr<ChatModel> inner, std::ofstream stream)
    : inner_(std::move(inner)), stream_(std::move(stream)) {}

absl::StatusOr<ChatReply> RecordingChatModel::Complete(const ChatRequest& request,
                                                       absl::Time deadline) {
  MTMC_ASSIGN_OR_RETURN(ChatReply reply, inner_->Complete(request, deadline));
  absl::MutexLock lock(&mu_);
  stream_ << ToLine(DigestOf(request), reply) << std::flush;
  if (!stream_) return absl::ResourceExhaustedError("cannot write the recording");
  return reply;
}

absl::StatusOr<std::unique_ptr<ReplayChatModel>> ReplayChatModel::Create(
    const std::filesystem::path& path) {
  MTMC_ASSIGN_OR_RETURN(const std::string content, base::ReadFile(path));
  std::map<std::string, Replies> replies;
  size_t begin = 0;
  for (int number = 1; begin < content.size(); ++number) {
    const size_t end = content.find('\n', begin);
    if (end == std::string::npos) break;
    std::optional<RecordedReply> recorded = FromLine(content.substr(begin, end - begin));
    if (!recorded) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " of ", path.string(), " is no recorded reply"));
    }
    replies[recorded->digest].replies.push_back(std::move(recorded->reply));
    begin = end + 1;
  }
  return std::unique_ptr<ReplayChatModel>(new ReplayChatModel(std::move(replies)));
}

ReplayChatModel::ReplayChatModel(std::map<std::string, Replies> replies)
    : replies_(std::move(replies)) {}

absl::StatusOr<ChatReply> ReplayChatModel::Complete(const ChatRequest& request, absl::Time) {
  absl::MutexLock lock(&mu_);
  const auto it = replies_.find(DigestOf(request));
  if (it == replies_.end()) {
    return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "REPLAY_MISSING",
                          "the recording has no reply to this request; record the job again");
  }
  Replies& recorded = it->second;
  const ChatReply& reply = recorded.replies[recorded.next];
  if (recorded.next + 1 < recorded.replies.size()) ++recorded.next;
  return reply;
}

}  // namespace mtmc::gateway
