// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/executor.h"
#include "common/base/trace_context.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "common/rpc/traced_call.h"

namespace mtmc::rpc {

// What a domain function may ask about the call it serves. Thread-safe; lives as
// long as the function runs.
class Call {
 public:
  virtual ~Call() = default;

  // Whether the client has gone: a long function looks now and then and returns
  // any status, which nobody reads.
  virtual bool is_cancelled() const = 0;

  // When the client stops waiting.
  virtual absl::Time deadline() const = 0;
};

// Serves a unary method of the callback API with `function`, called as
// absl::StatusOr<Response>(const Request&, const Call&) on `executor`:
//
//   grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
//                                    const GetJobRequest* request,
//                                    GetJobResponse* response) override {
//     return rpc::ServeUnary(context, *request, *response, executor_,
//                            [this](const auto& request, const rpc::Call&) {
//                              return jobs_.Get(request);
//                            });
//   }
//
// The method never blocks gRPC's threads; it finishes exactly once: with the
// function's status, with RESOURCE_EXHAUSTED (reason OVERLOADED) when the
// executor is full, or with CANCELLED without running the function if the client
// has gone before its turn. `function` runs in the trace of the call. What it holds
// outlives the executor.
template <typename Request, typename Response, typename Function>
grpc::ServerUnaryReactor* ServeUnary(grpc::CallbackServerContext* context, const Request& request,
                                     Response& response, base::Executor& executor,
                                     Function function);

// Implementation of the template.

namespace internal {

// Owned by gRPC from the return of the method to OnDone().
class UnaryReactor final : public grpc::ServerUnaryReactor, public Call {
 public:
  explicit UnaryReactor(absl::Time deadline) : deadline_(deadline) {}

  bool is_cancelled() const override { return is_cancelled_.load(std::memory_order_relaxed); }

  absl::Time deadline() const override { return deadline_; }

  void OnCancel() override { is_cancelled_.store(true, std::memory_order_relaxed); }

  void OnDone() override { delete this; }

  void FinishWith(const absl::Status& status) { Finish(ToGrpc(status)); }

 private:
  const absl::Time deadline_;
  std::atomic<bool> is_cancelled_ = false;
};

// The error of an executor that took no more work.
absl::Status Overloaded(const absl::Status& status);

}  // namespace internal

template <typename Request, typename Response, typename Function>
grpc::ServerUnaryReactor* ServeUnary(grpc::CallbackServerContext* context, const Request& request,
                                     Response& response, base::Executor& executor,
                                     Function function) {
  auto* reactor = new internal::UnaryReactor(FromGrpcDeadline(context->deadline()));
  const absl::Status submitted =
      executor.Submit([reactor, &request, &response, trace = TraceOf(*context),
                       function = std::move(function)]() mutable {
        if (reactor->is_cancelled()) return reactor->FinishWith(absl::CancelledError());
        const base::TraceScope scope(trace);
        absl::StatusOr<Response> result = function(request, static_cast<const Call&>(*reactor));
        if (result.ok()) response = *std::move(result);
        reactor->FinishWith(result.status());
      });
  if (!submitted.ok()) reactor->FinishWith(internal::Overloaded(submitted));
  return reactor;
}

}  // namespace mtmc::rpc
