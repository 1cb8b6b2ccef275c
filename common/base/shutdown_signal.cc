// SPDX-License-Identifier: Apache-2.0
#include "common/base/shutdown_signal.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "absl/time/clock.h"
#include "common/base/check.h"

namespace mtmc::base {
namespace {

sigset_t StopSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  return signals;
}

void Raise(const UniqueFd& event) {
  const std::uint64_t one = 1;
  MTMC_CHECK(::write(event.get(), &one, sizeof one) == sizeof one);
}

}  // namespace

ShutdownSignal::ShutdownSignal()
    : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), end_(::eventfd(0, EFD_CLOEXEC)) {
  const sigset_t signals = StopSignals();
  MTMC_CHECK(::pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC));
  MTMC_CHECK(event_.is_open() && end_.is_open() && signals_.is_open());
  watcher_ = std::jthread([this] { Watch(); });
}

ShutdownSignal::~ShutdownSignal() { Raise(end_); }

void ShutdownSignal::Wait() const { WaitUntil(absl::InfiniteFuture()); }

bool ShutdownSignal::WaitUntil(absl::Time deadline) const {
  while (true) {
    // poll() takes milliseconds in an int: a long wait is several polls, and a
    // part of a millisecond is rounded up, or it would spin.
    const std::int64_t left_ms = absl::ToInt64Milliseconds(
        std::clamp(deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1)) +
        absl::Microseconds(999));
    pollfd entry{.fd = event_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>(left_ms)) > 0) return true;
    if (absl::Now() >= deadline) return false;
  }
}

void ShutdownSignal::Request() {
  if (source_.request_stop()) Raise(event_);
}

void ShutdownSignal::Watch() {
  while (true) {
    std::array<pollfd, 2> entries{{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = end_.get(), .events = POLLIN, .revents = 0}}};
    if (::poll(entries.data(), entries.size(), -1) < 0) continue;
    if (entries[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) continue;
    if (source_.stop_requested()) {
      const int signal = static_cast<int>(info.ssi_signo);
      ::signal(signal, SIG_DFL);
      const sigset_t signals = StopSignals();
      ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      ::raise(signal);
    }
    Request();
  }
}

}  // namespace mtmc::base
