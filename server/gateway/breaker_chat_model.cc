// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/breaker_chat_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"

namespace mtmc::gateway {

BreakerChatModel::BreakerChatModel(std::unique_ptr<ChatModel> inner, base::Clock& clock,
                                   Options options)
    : inner_(std::move(inner)), clock_(clock), options_(options) {}

absl::StatusOr<ChatReply> BreakerChatModel::Complete(const ChatRequest& request,
                                                     absl::Time deadline) {
  MTMC_ASSIGN_OR_RETURN(const bool is_probe, Admit());
  absl::StatusOr<ChatReply> reply = inner_->Complete(request, deadline);
  Note(reply.status(), is_probe);
  return reply;
}

absl::StatusOr<bool> BreakerChatModel::Admit() {
  absl::MutexLock lock(&mu_);
  if (failures_ < options_.max_failures) return false;
  const absl::Time now = clock_.Now();
  if (now < open_until_) {
    return rpc::MakeError(
        absl::StatusCode::kUnavailable, "CODER_UNAVAILABLE",
        absl::StrCat("the model failed ", failures_, " times in a row; next try in ",
                     absl::ToInt64Seconds(open_until_ - now) + 1, " s"));
  }
  if (is_probing_) {
    return rpc::MakeError(
        absl::StatusCode::kUnavailable, "CODER_UNAVAILABLE",
        absl::StrCat("the model failed ", failures_, " times in a row; one call tries it again"));
  }
  is_probing_ = true;
  return true;
}

void BreakerChatModel::Note(const absl::Status& status, bool is_probe) {
  const bool is_failure = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  absl::MutexLock lock(&mu_);
  if (is_probe) is_probing_ = false;
  if (!is_failure) {
    failures_ = 0;
    return;
  }
  if (++failures_ < options_.max_failures) return;
  open_until_ = clock_.Now() + options_.open_time;
  base::Log(base::LogLevel::kWarning, "model is not asked for a while",
            {{"failures", failures_}, {"seconds", absl::ToInt64Seconds(options_.open_time)}});
}

}  // namespace mtmc::gateway
