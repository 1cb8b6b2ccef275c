// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/recording.h"

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
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
  return std::unique_ptr<RecordingChatModel>(new RecordingChatModel(std::move(inner), path));
}

RecordingChatModel::RecordingChatModel(std::unique_ptr<ChatModel> inner, std::filesystem::path path)
    : inner_(std::move(inner)), path_(std::move(path)) {}

absl::StatusOr<ChatReply> RecordingChatModel::Complete(const ChatRequest& request,
                                                       absl::Time deadline) {
  const std::string digest = DigestOf(request);
  {
    absl::MutexLock lock(&mu_);
    MTMC_RETURN_IF_ERROR(WriteKept());
    const auto paid = ungiven_.find(digest);
    if (paid != ungiven_.end()) return std::move(ungiven_.extract(paid).mapped());
  }
  MTMC_ASSIGN_OR_RETURN(ChatReply reply, inner_->Complete(request, deadline));
  absl::MutexLock lock(&mu_);
  kept_ += ToLine(digest, reply);
  const absl::Status status = WriteKept();
  if (status.ok()) return reply;
  ungiven_.emplace(digest, std::move(reply));
  return status;
}

absl::Status RecordingChatModel::WriteKept() {
  if (kept_.empty() || Append(kept_)) {
    kept_.clear();
    return absl::OkStatus();
  }
  return rpc::MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                        absl::StrCat("cannot write the recording ", path_.string(),
                                     "; no model is asked until it can"));
}

bool RecordingChatModel::Append(const std::string& text) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path_, error);
  std::ofstream stream(path_, std::ios::binary | std::ios::app);
  stream << text;
  stream.close();
  // What was written of it would be a line of rubbish before the next one.
  if (!stream && !error) std::filesystem::resize_file(path_, size, error);
  return static_cast<bool>(stream);
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
