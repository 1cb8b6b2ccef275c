// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace mtmc::base {

// A named pool of threads with a bounded queue: where blocking work goes, so
// that RPC threads never block.
//
// A service: thread-safe, immovable. Tasks run in the order of submission, each
// on some thread of the pool; they must not throw.
class Executor {
 public:
  struct Options {
    // Name of the threads (first 15 characters) and of the pool in errors.
    std::string name;
    int num_threads = 2;
    // Tasks that wait beyond the running ones. At 10 ms a task and two threads,
    // 1,000 of them are five seconds of work: longer queues only add latency.
    std::size_t max_queued = 1000;
  };

  using Task = absl::AnyInvocable<void()>;

  explicit Executor(Options options);

  // Drains without a time limit.
  ~Executor();

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Queues `task`. RESOURCE_EXHAUSTED if the queue is full (the caller backs
  // off), UNAVAILABLE once draining; `task` is then destroyed without a run.
  absl::Status Submit(Task task);

  // Refuses new tasks and waits until all queued ones have run; false if
  // `deadline` comes first (they go on running). Not from a task of the pool.
  bool Drain(absl::Time deadline = absl::InfiniteFuture());

 private:
  void Work();

  // Constant after construction.
  const Options options_;
  std::vector<std::jthread> threads_;

  absl::Mutex mu_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mu_);
  int num_running_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace mtmc::base
