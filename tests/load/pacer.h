// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace mtmc::load {

// One thread that runs tasks when their time has come. Thread-safe.
class Pacer {
 public:
  Pacer();
  // Drops what is not due.
  ~Pacer();

  // Runs `task` after `delay`, on the pacer's thread.
  void After(absl::Duration delay, std::function<void()> task);

  // Ends the thread after the task that runs; later ones are dropped. Call from another.
  void Stop();

 private:
  struct Core;

  const std::unique_ptr<Core> core_;
};

}  // namespace mtmc::load
