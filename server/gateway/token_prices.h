// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "server/gateway/chat_model.h"

namespace mtmc::gateway {

// What a provider takes for tokens, in US dollars a million, which is also millionths of a
// dollar a token. A value.
struct TokenPrices {
  double input_usd_per_million = 0;
  double output_usd_per_million = 0;

  // Whether anybody has said what tokens cost.
  bool are_known() const { return input_usd_per_million > 0 || output_usd_per_million > 0; }

  // In millionths of a dollar, to the nearest; none where prices are not known.
  std::optional<int64_t> CostMicros(const ChatTokens& tokens) const {
    if (!are_known()) return std::nullopt;
    return std::llround(input_usd_per_million * static_cast<double>(tokens.input) +
                        output_usd_per_million * static_cast<double>(tokens.output));
  }
};

}  // namespace mtmc::gateway
