// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/gateway/chat_model.h"

namespace mtmc::gateway {

// A ChatModel for tests: gives the queued outcomes in order, then INTERNAL, and
// keeps what it was asked. Thread-safe.
class FakeChatModel final : public ChatModel {
 public:
  void Push(absl::StatusOr<ChatReply> outcome) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    outcomes_.push_back(std::move(outcome));
  }

  absl::StatusOr<ChatReply> Complete(const ChatRequest& request, absl::Time) override
      ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    requests_.push_back(request);
    if (outcomes_.empty()) return absl::InternalError("the fake has no more outcomes");
    absl::StatusOr<ChatReply> outcome = std::move(outcomes_.front());
    outcomes_.pop_front();
    return outcome;
  }

  std::vector<ChatRequest> requests() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return requests_;
  }

 private:
  mutable absl::Mutex mu_;
  std::deque<absl::StatusOr<ChatReply>> outcomes_ ABSL_GUARDED_BY(mu_);
  std::vector<ChatRequest> requests_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::gateway
