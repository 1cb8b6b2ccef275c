// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace boost::asio {
class io_context;
}

namespace mtmc::search {

// The one thread that owns the coordinator's moving state: searches, leases and
// the fleet. Everything there runs as a task of this loop, one after another,
// so that none of it needs a lock. Thread-safe.
class EventLoop {
 public:
  EventLoop();
  // Stops.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Starts the thread. Call once.
  void Start();

  // Ends the thread after the task that runs; later posts are dropped. Call
  // from another thread.
  void Stop();

  // Queues a task. Never blocks and never runs it at once.
  void Post(std::function<void()> task);

  // Queues a task that overtakes those of Post: for a person who waits for the answer, while
  // thousands of workers' calls may be queued. Among themselves they keep their order.
  void PostFirst(std::function<void()> task);

  // Queues a task after `delay`.
  void PostAfter(absl::Duration delay, std::function<void()> task);

  // A Post that may outlive the loop, and then does nothing. For replies that
  // come back after a shutdown.
  std::function<void(std::function<void()>)> poster() const;

  // For coroutines on this loop.
  boost::asio::io_context& context();

 private:
  struct Core;

  const std::shared_ptr<Core> core_;
};

}  // namespace mtmc::search
