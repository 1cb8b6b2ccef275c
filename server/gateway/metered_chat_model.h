// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "server/gateway/chat_model.h"

namespace mtmc::metrics {
class Registry;
}

namespace mtmc::gateway {

// Counts what goes through it:
//   mtmc_llm_requests_total{model, outcome}       ok, timeout, unavailable, refused, garbled,
//   failed mtmc_llm_request_duration_seconds{model}      retries included
//   mtmc_llm_tokens_total{model, type}            input, output
class MeteredChatModel final : public ChatModel {
 public:
  // `clock` and `registry` are borrowed.
  MeteredChatModel(std::unique_ptr<ChatModel> inner, base::Clock& clock,
                   metrics::Registry& registry);

  absl::StatusOr<ChatReply> Complete(const ChatRequest& request, absl::Time deadline) override;

 private:
  // Clients name models; only the first few become label values.
  std::string LabelOf(const std::string& model) ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<ChatModel> inner_;
  base::Clock& clock_;
  metrics::Registry& registry_;

  absl::Mutex mu_;
  std::set<std::string> models_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::gateway
