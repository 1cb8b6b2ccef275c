// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/executor.h"
#include "common/base/id.h"
#include "common/rpc/deadline.h"
#include "common/rpc/security.h"
#include "common/rpc/status.h"
#include "common/rpc/unary.h"
#include "server/coordinator/seat.h"

namespace mtmc::coordinator {

// Brings calls to whoever owns the jobs: to the Coordinator of this process, or to
// another process, as the caller's. While nobody does, because one has just died, calls
// wait for the next for a while. Every call that goes through here may be made twice.
// Thread-safe. Private to the services of this folder.
class Relay {
 public:
  // `seat` outlives it. `security` is that of channels to other coordinators; calls go as
  // their caller's, so that it has no token.
  explicit Relay(const Seat& seat, rpc::ChannelSecurity security = {});

  // Serves a unary method by `local`, called as
  // absl::StatusOr<Response>(Coordinator&, const Request&) on `executor`, or by `method`
  // of the owner's `Service`.
  template <class Service, class Request, class Response, class Local>
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, const Request& request,
                                  Response& response, base::Executor& executor,
                                  grpc::Status (Service::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                  Local local);

  // A channel to the owner, for a call of `context`. UNAVAILABLE with reason NO_OWNER
  // when nobody is known, or when the call was relayed to this process already.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> ChannelFor(
      const grpc::CallbackServerContext& context) ABSL_LOCKS_EXCLUDED(mu_);

  // Makes `to` a relayed call of whoever made `from`.
  static void Prepare(const grpc::CallbackServerContext& from, grpc::ClientContext& to);

 private:
  template <class Service, class Request, class Response, class Local>
  absl::StatusOr<Response> Answer(const grpc::CallbackServerContext& context,
                                  const Request& request, const rpc::Call& call,
                                  grpc::Status (Service::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                  Local& local);

  // Whether the owner has not done what it was asked for, and the next one might.
  static bool IsBetweenOwners(const absl::Status& status, bool is_local);

  const Seat& seat_;
  const rpc::ChannelSecurity security_;
  // Apart from the caller's, so that those who wait for an owner keep no reader waiting.
  base::Executor executor_;

  absl::Mutex mu_;
  std::string address_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
};

// Implementation of the templates.

namespace internal {

// How long a call waits for an owner: longer than one that died is missed, shorter than
// people are patient.
inline constexpr absl::Duration kMaxWaitForOwner = absl::Seconds(15);
inline constexpr absl::Duration kLook = absl::Milliseconds(200);

// A call that is made again, because its owner died over it, is known by its id.
template <class Request>
void SetRequestId(Request& request) {
  if constexpr (requires { request.set_request_id(std::string()); }) {
    if (request.request_id().empty()) request.set_request_id(base::MakeUuid4());
  }
}

}  // namespace internal

template <class Service, class Request, class Response, class Local>
grpc::ServerUnaryReactor* Relay::Serve(grpc::CallbackServerContext* context, const Request& request,
                                       Response& response, base::Executor& executor,
                                       grpc::Status (Service::Stub::*method)(grpc::ClientContext*,
                                                                             const Request&,
                                                                             Response*),
                                       Local local) {
  base::Executor& chosen = seat_.local() != nullptr ? executor : executor_;
  return rpc::ServeUnary(
      context, request, response, chosen,
      [this, context, method, local](const Request& asked, const rpc::Call& call) mutable {
        return Answer<Service, Request, Response>(*context, asked, call, method, local);
      });
}

template <class Service, class Request, class Response, class Local>
absl::StatusOr<Response> Relay::Answer(
    const grpc::CallbackServerContext& context, const Request& request, const rpc::Call& call,
    grpc::Status (Service::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    Local& local) {
  const absl::Time deadline = std::min(call.deadline(), absl::Now() + internal::kMaxWaitForOwner);
  Request asked = request;
  internal::SetRequestId(asked);
  while (true) {
    absl::StatusOr<Response> answer = Response();
    const std::shared_ptr<Coordinator> coordinator = seat_.local();
    if (coordinator != nullptr) {
      answer = local(*coordinator, asked);
    } else if (const auto channel = ChannelFor(context); channel.ok()) {
      grpc::ClientContext relayed;
      Prepare(context, relayed);
      rpc::SetDeadline(relayed, deadline);
      typename Service::Stub stub(*channel);
      const grpc::Status status = (stub.*method)(&relayed, asked, &*answer);
      if (!status.ok()) answer = rpc::FromGrpc(status);
    } else {
      answer = channel.status();
    }
    if (answer.ok() || !IsBetweenOwners(answer.status(), coordinator != nullptr) ||
        call.is_cancelled() || absl::Now() >= deadline) {
      return answer;
    }
    seat_.AwaitChange(std::min(deadline, absl::Now() + internal::kLook));
  }
}

}  // namespace mtmc::coordinator
