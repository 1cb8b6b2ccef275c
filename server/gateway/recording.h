// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/gateway/chat_model.h"

// A recording is a file of JSON lines, one per reply in the order of arrival:
//
//   {"request":"<digest>","model":"m","text":"...","is_cut":false,"input_tokens":9,"output_tokens":7}
//
// With it a job can be run again without a key and without a network. Requests
// are there by digest only: what they held is in the job's own records.

namespace mtmc::gateway {

// Passes requests on and appends every reply to a recording.
class RecordingChatModel final : public ChatModel {
 public:
  // Appends to `path`, which is made if missing. Fails where it cannot be
  // written.
  static absl::StatusOr<std::unique_ptr<RecordingChatModel>> Create(
      std::unique_ptr<ChatModel> inner, const std::filesystem::path& path);

  // While the recording cannot be written (disk full) every call is
  // RESOURCE_EXHAUSTED with reason DISK_FULL, since a recording with holes would not
  // repeat the job. No model is asked then, and a reply that came before that was
  // known is kept: its request gets it when it is made again.
  absl::StatusOr<ChatReply> Complete(const ChatRequest& request, absl::Time deadline) override;

 private:
  RecordingChatModel(std::unique_ptr<ChatModel> inner, std::filesystem::path path);

  // DISK_FULL unless all that is kept is written now.
  absl::Status WriteKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The whole text or nothing.
  bool Append(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<ChatModel> inner_;
  const std::filesystem::path path_;

  absl::Mutex mu_;
  // What is to be written, and the replies in it that nobody has got.
  std::string kept_ ABSL_GUARDED_BY(mu_);
  std::multimap<std::string, ChatReply> ungiven_ ABSL_GUARDED_BY(mu_);
};

// Answers from a recording. A request that was made several times gets its
// replies in their order, then the last one again.
class ReplayChatModel final : public ChatModel {
 public:
  // INVALID_ARGUMENT names the first line that is no recorded reply; a last line
  // without an end is dropped, because a crash can leave one.
  static absl::StatusOr<std::unique_ptr<ReplayChatModel>> Create(const std::filesystem::path& path);

  // FAILED_PRECONDITION with reason REPLAY_MISSING for an unknown request.
  absl::StatusOr<ChatReply> Complete(const ChatRequest& request, absl::Time deadline) override;

 private:
  struct Replies {
    std::vector<ChatReply> replies;
    size_t next = 0;
  };

  explicit ReplayChatModel(std::map<std::string, Replies> replies);

  absl::Mutex mu_;
  std::map<std::string, Replies> replies_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::gateway
