// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "common/base/unique_fd.h"

namespace mtmc::base {

// SIGINT and SIGTERM as an ordinary event, instead of a handler in which nothing
// is allowed. Also ignores SIGPIPE, so that a vanished peer is an error code.
//
//   int main() {
//     ShutdownSignal shutdown;        // before any thread is started
//     ...
//     shutdown.Wait();                // blocks main
//     server->Shutdown(...);
//   }
//
// The first signal requests a stop. A second one ends the process at once, with
// the signal's own exit code: the way out when shutting down hangs.
//
// Thread-safe. At most one per process: the signals are the process's.
class ShutdownSignal {
 public:
  // REQUIRES: no other thread runs yet, because threads inherit the mask.
  ShutdownSignal();
  ~ShutdownSignal();

  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  // Blocks until a stop is requested.
  void Wait() const;

  // As Wait(), but returns false at `deadline`.
  bool WaitUntil(absl::Time deadline) const;

  // Requests a stop as a signal would: for errors found after start.
  void Request();

  // For code that takes a stop_token or a stop_callback. Callbacks run on the
  // thread that requests the stop; they must be short, because the second
  // signal is seen only after them.
  std::stop_token token() const { return source_.get_token(); }

  // Readable once a stop is requested, for poll() and event loops. Do not read.
  int fd() const { return event_.get(); }

 private:
  void Watch();

  std::stop_source source_;
  UniqueFd event_;
  UniqueFd signals_;
  UniqueFd end_;
  std::jthread watcher_;
};

}  // namespace mtmc::base
