// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <random>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "server/gateway/chat_model.h"

namespace mtmc::gateway {

// Asks again when the inner model is UNAVAILABLE, and only then: every other
// failure says that the request was looked at. Waits as long as the provider
// asks, otherwise twice as long each time, with jitter. Gives the last error
// when attempts or time run out; a wait that would pass the deadline is not
// begun.
class RetryingChatModel final : public ChatModel {
 public:
  struct Options {
    int max_attempts = 4;
    absl::Duration first_wait = absl::Milliseconds(500);
    // Also the longest Retry-After that is obeyed; a longer one ends the call.
    absl::Duration max_wait = absl::Seconds(60);
  };

  // `clock` is borrowed.
  RetryingChatModel(std::unique_ptr<ChatModel> inner, base::Clock& clock, Options options);

  absl::StatusOr<ChatReply> Complete(const ChatRequest& request, absl::Time deadline) override;

 private:
  absl::Duration WaitAfter(const absl::Status& status, int attempt);
  void WaitUntil(absl::Time time);

  const std::unique_ptr<ChatModel> inner_;
  base::Clock& clock_;
  const Options options_;

  absl::Mutex mu_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::gateway
