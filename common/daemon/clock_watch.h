// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "absl/time/time.h"

namespace mtmc::daemon {

// Looks once a second whether the wall clock was set back, which is more than a daemon can
// bear: the packaged Abseil, and gRPC with it, waits until times of that clock, so that after
// a step of an hour timers stand still for an hour. Nothing but a new process helps, and
// daemons are made to be killed at any time:
//
//   base::ShutdownSignal shutdown;
//   const daemon::ClockWatch clock_watch(shutdown.token());
//
// A service: immovable; its thread runs as long as it lives.
class ClockWatch {
 public:
  // Times since any beginning.
  using ReadClock = std::function<absl::Duration()>;

  struct Options {
    ReadClock wall;
    ReadClock steady;
    absl::Duration interval = absl::Seconds(1);
    // Steps by which waits may become longer.
    absl::Duration tolerance = absl::Seconds(2);
    // Called with how far the clock was set back.
    std::function<void(absl::Duration)> on_set_back;
  };

  // Begins the process anew (RestartProcess) once the clock is set back by more than 2 s, unless
  // `shutdown` was requested. A daemon that was told to listen at port 0 gets another one.
  explicit ClockWatch(std::stop_token shutdown);

  // With other clocks, for tests.
  explicit ClockWatch(Options options);

  ~ClockWatch();
  ClockWatch(const ClockWatch&) = delete;
  ClockWatch& operator=(const ClockWatch&) = delete;

 private:
  void Watch(const std::stop_token& stop);

  const Options options_;
  // Of the standard library, whose relative waits the kernel counts by the steady clock.
  std::mutex mu_;
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace mtmc::daemon
