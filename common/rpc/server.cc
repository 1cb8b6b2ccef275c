// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/server.h"

#include <arpa/inet.h>
#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_interceptor.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/unique_fd.h"
#include "common/rpc/callback_threads.h"
#include "common/rpc/status.h"
#include "common/rpc/tls.h"
#include "common/rpc/traced_call.h"

namespace mtmc::rpc {
namespace {

struct HostPort {
  std::string host;
  std::string port;
};

absl::StatusOr<HostPort> ParseAddress(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos || colon == 0 || colon + 1 == address.size()) {
    return MakeError(absl::StatusCode::kInvalidArgument, "ADDRESS_INVALID",
                     absl::StrCat("address is \"", address, "\", must be host:port"));
  }
  HostPort result{.host = address.substr(0, colon), .port = address.substr(colon + 1)};
  if (result.host.front() == '[' && result.host.back() == ']') {
    result.host = result.host.substr(1, result.host.size() - 2);
  }
  return result;
}

// Whether the address can be bound. gRPC itself answers "port 0" to every
// failure and prints the cause to the log; this tells it to the user.
absl::Status ProbeAddress(const std::string& address) {
  MTMC_ASSIGN_OR_RETURN(const HostPort parsed, ParseAddress(address));
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(parsed.host.c_str(), parsed.port.c_str(), &hints, &found);
  if (failure != 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, "ADDRESS_INVALID",
                     absl::StrCat("address \"", address, "\": ", ::gai_strerror(failure)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
  const base::UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // As gRPC does, or a port in TIME_WAIT would count as taken.
  const int one = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0) return absl::OkStatus();
  if (errno == EADDRINUSE) {
    return MakeError(absl::StatusCode::kUnavailable, "PORT_TAKEN",
                     absl::StrCat("address ", address,
                                  " is in use by another process; choose another port or stop it"),
                     {{"address", address}});
  }
  const int error_number = errno;
  return MakeError(absl::StatusCode::kInvalidArgument, "ADDRESS_INVALID",
                   absl::StrCat("address ", address, " cannot be bound: ",
                                absl::ErrnoToStatus(error_number, "bind").message()));
}

void SetKeepalive(grpc::ServerBuilder& builder) {
  // A peer that is gone is noticed within 30 s even behind a NAT that drops
  // silently; clients of ours ping at the same rate, which must be allowed.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  // One owner per port: with reuse a second server would share it silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace

struct RpcServer::State {
  std::unique_ptr<grpc::Server> server;
  std::string address;
  int port = 0;
};

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Create(const Options& options) {
  MTMC_RETURN_IF_ERROR(ProbeAddress(options.address));
  MTMC_RETURN_IF_ERROR(Check(options.security, options.address));
  KeepCallbackThreads();
  // Both act on servers that are built later, in the whole process.
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
  auto state = std::make_unique<State>();
  grpc::ServerBuilder builder;
  SetKeepalive(builder);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(options.max_message_bytes);
  builder.AddListeningPort(options.address, MakeCredentials(options.security), &state->port);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  for (const MakeInterceptor& make : options.interceptors) interceptors.push_back(make());
  interceptors.push_back(MakeServerTracer());
  // Last, so that it sees the status that the others have made of the method's.
  if (options.on_call) interceptors.push_back(MakeCallObserver(options.on_call));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  state->server = builder.BuildAndStart();
  if (state->server == nullptr || state->port == 0) {
    return MakeError(absl::StatusCode::kUnavailable, "PORT_TAKEN",
                     absl::StrCat("address ", options.address, " was taken while starting"),
                     {{"address", options.address}});
  }
  state->address =
      absl::StrCat(options.address.substr(0, options.address.rfind(':')), ":", state->port);
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(state)));
}

RpcServer::RpcServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

RpcServer::~RpcServer() { Shutdown(absl::InfinitePast()); }

int RpcServer::port() const { return state_->port; }

const std::string& RpcServer::address() const { return state_->address; }

std::shared_ptr<grpc::Channel> RpcServer::MakeInProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return state_->server->InProcessChannel(arguments);
}

void RpcServer::SetServing(bool is_serving) {
  state_->server->GetHealthCheckService()->SetServingStatus(is_serving);
}

void RpcServer::Shutdown(absl::Time deadline) {
  SetServing(false);
  state_->server->Shutdown(absl::ToChronoTime(deadline));
  state_->server->Wait();
}

}  // namespace mtmc::rpc
