// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/seat.h"

#include <utility>

#include "server/coordinator/coordinator.h"

namespace mtmc::coordinator {

std::shared_ptr<Coordinator> Seat::local() const {
  absl::MutexLock lock(&mu_);
  return local_;
}

std::string Seat::remote() const {
  absl::MutexLock lock(&mu_);
  return remote_;
}

void Seat::SetLocal(std::shared_ptr<Coordinator> coordinator) {
  {
    absl::MutexLock lock(&mu_);
    local_.swap(coordinator);
    remote_.clear();
  }
  changed_.SignalAll();
}

void Seat::SetRemote(const std::string& address) {
  // What was here may end with its last holder, which is not to happen under the lock.
  std::shared_ptr<Coordinator> before;
  {
    absl::MutexLock lock(&mu_);
    local_.swap(before);
    if (before == nullptr && remote_ == address) return;
    remote_ = address;
  }
  changed_.SignalAll();
}

void Seat::AwaitChange(absl::Time deadline) const {
  absl::MutexLock lock(&mu_);
  changed_.WaitWithDeadline(&mu_, deadline);
}

}  // namespace mtmc::coordinator
