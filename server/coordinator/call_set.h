// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "server/search/backends.h"

namespace mtmc::coordinator {

// The unary calls of one client that are under way, so that it can end: the
// destructor cancels them and waits until each has called its Done.
// Thread-safe. Private to the gRPC clients of this folder.
class CallSet {
 public:
  explicit CallSet(absl::Duration timeout) : timeout_(timeout) {}

  ~CallSet() {
    absl::MutexLock lock(&mu_);
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
    mu_.Await(absl::Condition(this, &CallSet::IsEmpty));
  }

  CallSet(const CallSet&) = delete;
  CallSet& operator=(const CallSet&) = delete;

  // `method(context, request, response, callback)` starts a call of the stub's
  // async interface.
  template <class Request, class Response, class Method>
  void Start(search::Asked<Request> request, search::Done<Response> done, Method method) {
    struct Call {
      grpc::ClientContext context;
      search::Asked<Request> request;
      Response response;
      search::Done<Response> done;
    };

    auto call = std::make_shared<Call>();
    call->request = std::move(request);
    call->done = std::move(done);
    rpc::SetDeadline(call->context, absl::Now() + timeout_);
    {
      absl::MutexLock lock(&mu_);
      contexts_.insert(&call->context);
    }
    method(&call->context, call->request.get(), &call->response,
           [this, call](const grpc::Status& status) {
             if (status.ok()) {
               call->done(std::move(call->response));
             } else {
               call->done(rpc::FromGrpc(status));
             }
             absl::MutexLock lock(&mu_);
             contexts_.erase(&call->context);
           });
  }

 private:
  bool IsEmpty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return contexts_.empty(); }

  const absl::Duration timeout_;
  absl::Mutex mu_;
  std::set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::coordinator
