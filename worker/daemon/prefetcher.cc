// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/prefetcher.h"

#include <utility>

#include "absl/time/time.h"

namespace mtmc::worker {
namespace {

constexpr absl::Duration kPollSlice = absl::Milliseconds(20);

}  // namespace

Prefetcher::Prefetcher(Prepare prepare) : prepare_(std::move(prepare)) {
  if (prepare_) {
    thread_ = std::jthread([this](const std::stop_token& stop) { PrepareUntilStopped(stop); });
  }
}

Prefetcher::~Prefetcher() {
  thread_.request_stop();
  absl::MutexLock lock(&mu_);
  held_.reset();
  current_.clear();
  changed_.SignalAll();
}

void Prefetcher::Adopt(const std::string& current, const v1::Lease* next) {
  absl::MutexLock lock(&mu_);
  current_ = current;
  const std::string wanted = next == nullptr ? "" : next->id();
  if (held_ && held_->id() == wanted) return;
  held_.reset();
  is_prepared_ = false;
  if (prepare_ && next != nullptr && next->has_evaluation()) held_ = *next;
  changed_.SignalAll();
}

std::string Prefetcher::held() const {
  absl::MutexLock lock(&mu_);
  return held_ ? held_->id() : "";
}

void Prefetcher::Await(const std::string& id, const std::function<bool()>& is_cancelled) {
  absl::MutexLock lock(&mu_);
  // One that the thread has not begun is not worth waiting for: who waits does
  // it as fast.
  while (preparing_ == id && !is_cancelled()) changed_.WaitWithTimeout(&mu_, kPollSlice);
}

bool Prefetcher::IsWanted(const std::string& id) const {
  absl::MutexLock lock(&mu_);
  return current_ == id || (held_ && held_->id() == id);
}

void Prefetcher::PrepareUntilStopped(const std::stop_token& stop) {
  while (true) {
    v1::Lease lease;
    {
      absl::MutexLock lock(&mu_);
      while (!stop.stop_requested() && (!held_ || is_prepared_)) changed_.Wait(&mu_);
      if (stop.stop_requested()) return;
      lease = *held_;
      preparing_ = lease.id();
    }
    prepare_(lease, [&] { return !IsWanted(lease.id()); });
    absl::MutexLock lock(&mu_);
    preparing_.clear();
    if (held_ && held_->id() == lease.id()) is_prepared_ = true;
    changed_.SignalAll();
  }
}

}  // namespace mtmc::worker
