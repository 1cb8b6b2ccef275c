// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mtmc::load {

// Lets a number of tasks run at a time, in the order in which they asked. Thread-safe.
class Turns {
 public:
  explicit Turns(int at_a_time) : free_(at_a_time) {}

  // Runs `task` at once or when another turn has ended.
  void Take(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);
  // A turn has ended.
  void End() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  int free_ ABSL_GUARDED_BY(mu_);
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::load
