// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/channel.h"

#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/bearer_token.h"
#include "common/rpc/callback_threads.h"
#include "common/rpc/tls.h"
#include "common/rpc/traced_call.h"

namespace mtmc::rpc {
namespace {

// An empty name matches every method. Waits of 0.2, 0.4 and 0.8 s with jitter.
constexpr char kServiceConfig[] = R"json({
  "methodConfig": [{
    "name": [{}],
    "retryPolicy": {
      "maxAttempts": 4,
      "initialBackoff": "0.2s",
      "maxBackoff": "2s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
})json";

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& endpoint,
                                           const ChannelOptions& options) {
  KeepCallbackThreads();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(options.max_message_bytes);
  if (options.retries_unavailable) {
    arguments.SetServiceConfigJSON(kServiceConfig);
  } else {
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  }
  // Loopback must not go through a proxy of the environment.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // A restarted server is found within a second or two, not gRPC's two minutes.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  // Despite its name the time that one attempt to connect may take: a loaded host
  // needs more than a moment for the handshake.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  // Channels to one endpoint with equal arguments would share a connection, and
  // with it the backoff; tests and restarts want their own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeClientTracer());
  if (!options.security.token_file.empty()) {
    interceptors.push_back(MakeTokenSender(options.security.token_file));
  }
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      endpoint, MakeCredentials(options.security), arguments, std::move(interceptors));
}

std::function<absl::Status()> WatchConnection(const std::string& endpoint,
                                              const ChannelSecurity& security) {
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(endpoint, {.security = security});
  channel->GetState(/*try_to_connect=*/true);
  return [channel, endpoint]() -> absl::Status {
    if (channel->GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("no connection to ", endpoint));
  };
}

}  // namespace mtmc::rpc
