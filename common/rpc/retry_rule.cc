// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/retry_rule.h"

#include <algorithm>
#include <string>

#include "common/rpc/error.h"

namespace mtmc::rpc {

RetryRule::RetryRule(const Options& options)
    : options_(options), pause_(options.first_pause), random_(std::random_device{}()) {}

absl::Duration RetryRule::PauseAfter(const absl::Status& status) {
  const absl::Duration own = pause_ * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  pause_ = std::min(2 * pause_, options_.max_pause);
  return std::max(own, std::min(RetryDelay(status), kMostAsked));
}

bool IsRefusedUnseen(const absl::Status& status) {
  const std::string reason = ErrorReason(status);
  return reason == "OVERLOADED" || reason == "SHUTTING_DOWN" || reason == "REQUEST_RATE_EXCEEDED";
}

}  // namespace mtmc::rpc
