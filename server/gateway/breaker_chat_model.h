// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "server/gateway/chat_model.h"

namespace mtmc::gateway {

// A circuit breaker: after several failures in a row (UNAVAILABLE or
// DEADLINE_EXCEEDED) it refuses calls at once with UNAVAILABLE for a while, so
// that jobs do not each wait minutes for a server that is down. Then one call
// is let through, the probe; however long it takes, there is no other until its
// outcome closes the circuit or opens it again.
class BreakerChatModel final : public ChatModel {
 public:
  struct Options {
    int max_failures = 5;
    absl::Duration open_time = absl::Seconds(30);
  };

  // `clock` is borrowed.
  BreakerChatModel(std::unique_ptr<ChatModel> inner, base::Clock& clock, Options options);

  absl::StatusOr<ChatReply> Complete(const ChatRequest& request, absl::Time deadline) override;

 private:
  // Whether a call that may be made now is the probe.
  absl::StatusOr<bool> Admit() ABSL_LOCKS_EXCLUDED(mu_);
  void Note(const absl::Status& status, bool is_probe) ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<ChatModel> inner_;
  base::Clock& clock_;
  const Options options_;

  absl::Mutex mu_;
  int failures_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_probing_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time open_until_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace mtmc::gateway
