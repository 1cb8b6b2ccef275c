// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/clock_watch.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "common/base/log.h"
#include "common/daemon/restart.h"

namespace mtmc::daemon {
namespace {

template <typename Clock>
absl::Duration Read() {
  return absl::FromChrono(Clock::now().time_since_epoch());
}

}  // namespace

ClockWatch::ClockWatch(std::stop_token shutdown)
    : ClockWatch(Options{.wall = Read<std::chrono::system_clock>,
                         .steady = Read<std::chrono::steady_clock>,
                         .on_set_back = [shutdown = std::move(shutdown)](absl::Duration step) {
                           if (shutdown.stop_requested()) return;
                           base::Log(base::LogLevel::kWarning,
                                     "the wall clock was set back, begins anew",
                                     {{"seconds", absl::ToDoubleSeconds(step)}});
                           RestartProcess();
                         }}) {}

ClockWatch::ClockWatch(Options options)
    : options_(std::move(options)), thread_([this](const std::stop_token& stop) { Watch(stop); }) {}

ClockWatch::~ClockWatch() {
  thread_.request_stop();
  thread_.join();
}

void ClockWatch::Watch(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "mtmc-clock");
  absl::Duration ahead = options_.wall() - options_.steady();
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mu_);
      stopped_.wait_for(lock, stop, absl::ToChronoNanoseconds(options_.interval),
                        [] { return false; });
    }
    const absl::Duration before = std::exchange(ahead, options_.wall() - options_.steady());
    if (before - ahead > options_.tolerance) options_.on_set_back(before - ahead);
  }
}

}  // namespace mtmc::daemon
