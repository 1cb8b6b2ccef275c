// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "server/gateway/chat_model.h"
#include "server/gateway/token_prices.h"

namespace mtmc::gateway {

// Counts what goes through it:
//
// | metric                                    |                                          |
// | mtmc_llm_requests_total{model, outcome}   | ok, timeout, unavailable, refused,       |
// |                                           | garbled, failed                          |
// | mtmc_llm_request_duration_seconds{model}  | retries included                         |
// | mtmc_llm_tokens_total{model, type}        | input, output                            |
// | mtmc_llm_cost_usd_total{model}            | tokens times their price, if one is set  |
//
// and makes a span of each call, `chat MODEL`, with its tokens; not with what is said.
class MeteredChatModel final : public ChatModel {
 public:
  // `clock` and `registry` are borrowed.
  MeteredChatModel(std::unique_ptr<ChatModel> inner, base::Clock& clock,
                   metrics::Registry& registry)
      : MeteredChatModel(std::move(inner), clock, registry, TokenPrices()) {}

  MeteredChatModel(std::unique_ptr<ChatModel> inner, base::Clock& clock,
                   metrics::Registry& registry, TokenPrices prices);

  absl::StatusOr<ChatReply> Complete(const ChatRequest& request, absl::Time deadline) override;

 private:
  // Of a client's name for a model. More than any job uses.
  metrics::BoundedLabel models_{20};
  const std::unique_ptr<ChatModel> inner_;
  base::Clock& clock_;
  metrics::Registry& registry_;
  const TokenPrices prices_;
};

}  // namespace mtmc::gateway
