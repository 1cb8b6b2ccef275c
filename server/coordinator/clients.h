// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/rpc/security.h"
#include "server/search/backends.h"

namespace mtmc::coordinator {

class CoordinatorMetrics;

// The gateway at `endpoint`. Calls end by `timeout`, which is above the longest
// reply of a language model with its retries. Destruction cancels what is under
// way and waits for it.
std::unique_ptr<search::MicroCoder> ConnectToGateway(const std::string& endpoint,
                                                     const rpc::ChannelSecurity& security = {},
                                                     absl::Duration timeout = absl::Minutes(10));

// The policy service at `endpoint`. The time-out is short, because the rules
// are there in no time: it allows a small model on a busy CPU. While the service asks not to be
// called, calls end with what it said, at once.
std::unique_ptr<search::MacroPolicy> ConnectToPolicy(const std::string& endpoint,
                                                     CoordinatorMetrics& metrics,
                                                     const rpc::ChannelSecurity& security = {},
                                                     absl::Duration timeout = absl::Seconds(15));

}  // namespace mtmc::coordinator
