// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/security.h"

namespace grpc {
class Channel;
}

namespace mtmc::rpc {

struct ChannelOptions {
  // As of RpcServer.
  int max_message_bytes = 16 << 20;
  // Whether UNAVAILABLE is retried by the channel: up to 4 attempts within 5 s,
  // never after the server has begun to answer. Off where the caller has its own
  // loop, as Synchronize has.
  bool retries_unavailable = true;
  // As Check() has accepted it.
  ChannelSecurity security = {};
};

// A channel to `endpoint` (host:port). Connects when first used, and again by
// itself after a loss. The published retry rule: only UNAVAILABLE is retried,
// because every other code says that the server has looked at the request.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& endpoint,
                                           const ChannelOptions& options = {});

// Tells whether a server answers at `endpoint`: OK, or UNAVAILABLE. The connection is of
// its own, made at once and again after a loss; what is returned does not wait. For
// metrics::Dependency. Thread-safe.
std::function<absl::Status()> WatchConnection(const std::string& endpoint,
                                              const ChannelSecurity& security = {});

}  // namespace mtmc::rpc
