// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace grpc {
class ServerContextBase;
class Service;

namespace experimental {
class ServerInterceptorFactoryInterface;
}  // namespace experimental
}  // namespace grpc

namespace mtmc::rpc {

// A call that has come, and that no method has seen. The views last as long as Decide().
struct ArrivedCall {
  // `mtmc.v1.JobService` and `GetJob`.
  std::string_view service;
  std::string_view method;
  // Values of the header `authorization`; who calls gives one.
  std::vector<std::string_view> authorization;
  // As gRPC writes addresses, such as `ipv4:10.0.0.7:41234`; `inproc` of REST.
  std::string peer;
  // What is asked for. Null where the client streams, or sent what does not parse.
  const google::protobuf::Message* request = nullptr;
};

// Decides on each call of a server before its method sees it. Thread-safe; called on
// gRPC's threads, must not wait for other calls.
class Gate {
 public:
  struct Decision {
    // OK lets the call in. Otherwise it is the call's answer, and the method never runs.
    absl::Status status;
    // Called once with what the call came to, CANCELLED if the client went before; may
    // be empty.
    std::function<void(absl::StatusCode)> on_end;
    // Who calls, for the method (CallerOf).
    std::string caller{};
    // What else the method may ask about them, as text of the gate's own (CallerNoteOf).
    std::string caller_note{};
  };

  virtual ~Gate() = default;

  virtual Decision Decide(const ArrivedCall& call) = 0;
};

// The service `full_name` of the contract, whose callback methods run only when the gate
// of the server has let the call in: MakeGateInterceptor() belongs to the same server,
// and without it every call is refused. `service` is borrowed.
std::unique_ptr<grpc::Service> PutBehindGate(grpc::Service& service, const std::string& full_name);

// Who makes the call of `context`, as the gate of its server knows them; empty on a
// server without a gate, whatever the client says.
std::string CallerOf(const grpc::ServerContextBase& context);

// What else the gate says about them; likewise empty without one.
std::string CallerNoteOf(const grpc::ServerContextBase& context);

// What asks `gate`, borrowed, about each call of the services whose full name begins
// with `mtmc.`. Health checks and reflection are open to all.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeGateInterceptor(
    Gate& gate);

}  // namespace mtmc::rpc
