// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/reaper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/log.h"

namespace mtmc::worker {
namespace {

// Tearing a context down takes a second at most.
constexpr absl::Duration kStuckAfter = absl::Seconds(10);

// For the report of a stuck one; an end wakes the thread by itself.
constexpr int kSweepMs = 1000;

}  // namespace

Reaper& Reaper::Default() {
  static Reaper& reaper = *new Reaper;
  return reaper;
}

Reaper::Reaper() : wake_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MTMC_CHECK(wake_event_.is_open());
  std::thread([this] { Run(); }).detach();
}

void Reaper::Take(base::Subprocess process, std::string name) {
  process.Kill();
  {
    absl::MutexLock lock(&mu_);
    dying_.push_back(
        {.process = std::move(process), .name = std::move(name), .killed = absl::Now()});
  }
  const uint64_t one = 1;
  // A full counter wakes the thread as well.
  [[maybe_unused]] const ssize_t ignored = ::write(wake_event_.get(), &one, sizeof one);
}

bool Reaper::AwaitAll(absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  const auto is_done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return dying_.empty(); };
  return mu_.AwaitWithDeadline(absl::Condition(&is_done), deadline);
}

int Reaper::num_stuck() const {
  const absl::Time limit = absl::Now() - kStuckAfter;
  absl::MutexLock lock(&mu_);
  return static_cast<int>(std::count_if(dying_.begin(), dying_.end(),
                                        [&](const Dying& d) { return d.killed < limit; }));
}

void Reaper::Run() {
  while (true) {
    std::vector<pollfd> entries = {{.fd = wake_event_.get(), .events = POLLIN, .revents = 0}};
    {
      absl::MutexLock lock(&mu_);
      for (const Dying& dying : dying_) {
        entries.push_back({.fd = dying.process.exit_fd(), .events = POLLIN, .revents = 0});
      }
    }
    ::poll(entries.data(), entries.size(), entries.size() == 1 ? -1 : kSweepMs);
    uint64_t ignored_count = 0;
    [[maybe_unused]] const ssize_t ignored =
        ::read(wake_event_.get(), &ignored_count, sizeof ignored_count);
    absl::MutexLock lock(&mu_);
    Sweep();
  }
}

void Reaper::Sweep() {
  std::erase_if(dying_, [](Dying& dying) { return dying.process.Wait(absl::Now()).ok(); });
  for (Dying& dying : dying_) {
    if (dying.is_reported || absl::Now() - dying.killed < kStuckAfter) continue;
    dying.is_reported = true;
    base::Log(base::LogLevel::kError, "a killed process does not end; its driver holds it",
              {{"process", dying.name}, {"pid", dying.process.pid()}});
  }
}

}  // namespace mtmc::worker
