// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace mtmc::coordinator {

class Coordinator;

// Who owns the jobs at present, as this process knows it: a Coordinator in here, another
// process, or nobody that is known. Thread-safe.
class Seat {
 public:
  // Null while it is elsewhere. Whoever holds it keeps it alive, though perhaps stopped:
  // its calls are then UNAVAILABLE.
  std::shared_ptr<Coordinator> local() const ABSL_LOCKS_EXCLUDED(mu_);

  // Address of the owner's gRPC while it is elsewhere; else empty.
  std::string remote() const ABSL_LOCKS_EXCLUDED(mu_);

  void SetLocal(std::shared_ptr<Coordinator> coordinator) ABSL_LOCKS_EXCLUDED(mu_);
  // Empty: nobody is known.
  void SetRemote(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until it may be another one than before, or until `deadline`.
  void AwaitChange(absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  mutable absl::CondVar changed_;
  std::shared_ptr<Coordinator> local_ ABSL_GUARDED_BY(mu_);
  std::string remote_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::coordinator
