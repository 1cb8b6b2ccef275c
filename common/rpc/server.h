// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"
#include "common/rpc/served_call.h"

namespace grpc {
class Channel;
class Service;

namespace experimental {
class ServerInterceptorFactoryInterface;
}  // namespace experimental
}  // namespace grpc

namespace mtmc::rpc {

// A gRPC server with grpc.health.v1, reflection and keepalive.
//
// A service: thread-safe, immovable. Serves from Create() to Shutdown() on
// gRPC's own threads.
class RpcServer {
 public:
  using MakeInterceptor =
      std::function<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>()>;

  struct Options {
    // host:port; port 0 takes a free one. Without TLS only loopback is taken, unless
    // `security` says otherwise.
    std::string address = "127.0.0.1:0";
    // Borrowed; they outlive the server.
    std::vector<grpc::Service*> services;
    // Refused beyond. 16 MiB holds the largest traced graph we know (2 MiB)
    // with room; blobs travel in chunks.
    int max_message_bytes = 16 << 20;
    // Hears of every call of `services`; may be empty.
    OnServedCall on_call = {};
    ServerSecurity security = {};
    // Each makes what sees every call: what is sent in this order, what is received in
    // the reverse one. A gate goes first.
    std::vector<MakeInterceptor> interceptors = {};
  };

  // UNAVAILABLE with reason PORT_TAKEN if the address is in use,
  // INVALID_ARGUMENT with reason ADDRESS_INVALID if it cannot be bound at all, and what
  // Check() of `security` says.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Create(const Options& options);

  // Shuts down without grace.
  ~RpcServer();

  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // The port that is bound.
  int port() const;

  // host:port with the bound port, for clients on this host.
  const std::string& address() const;

  // Calls the services without a network; for this process alone.
  std::shared_ptr<grpc::Channel> MakeInProcessChannel();

  // What health checks answer; true after Create().
  void SetServing(bool is_serving);

  // Health checks say NOT_SERVING, new calls are refused; calls in flight go on
  // until `deadline` and are then cancelled. Blocks until all have ended. May be
  // called again.
  void Shutdown(absl::Time deadline);

 private:
  struct State;

  explicit RpcServer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace mtmc::rpc
