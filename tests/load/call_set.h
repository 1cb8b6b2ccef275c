// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mtmc::load {

// The calls under way, so that all can be ended and waited for. Thread-safe.
class CallSet {
 public:
  // False once CancelAll() was called: the call must not begin. `context` outlives Remove().
  bool Add(grpc::ClientContext& context) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (is_closed_) return false;
    calls_.insert(&context);
    return true;
  }

  // The last thing that a call does.
  void Remove(grpc::ClientContext& context) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    calls_.erase(&context);
  }

  // Returns when every call has ended; none begins any more.
  void CancelAll() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    is_closed_ = true;
    for (grpc::ClientContext* call : calls_) call->TryCancel();
    mu_.Await(absl::Condition(&calls_, &std::set<grpc::ClientContext*>::empty));
  }

 private:
  absl::Mutex mu_;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::load
