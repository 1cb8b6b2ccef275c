// SPDX-License-Identifier: Apache-2.0
#include "tests/load/turns.h"

#include <utility>

namespace mtmc::load {

void Turns::Take(std::function<void()> task) {
  {
    absl::MutexLock lock(&mu_);
    if (free_ == 0) return waiting_.push_back(std::move(task));
    --free_;
  }
  task();
}

void Turns::End() {
  std::function<void()> task;
  {
    absl::MutexLock lock(&mu_);
    if (waiting_.empty()) {
      ++free_;
      return;
    }
    task = std::move(waiting_.front());
    waiting_.pop_front();
  }
  task();
}

}  // namespace mtmc::load
