// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/prefetcher.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace mtmc::worker {
namespace {

constexpr absl::Duration kPollSlice = absl::Milliseconds(20);

}  // namespace

Prefetcher::Prefetcher(Options options) : options_(std::move(options)) {
  for (int i = 0; i < most(); ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { PrepareUntilStopped(stop); });
  }
}

Prefetcher::~Prefetcher() {
  for (std::jthread& thread : threads_) thread.request_stop();
  {
    absl::MutexLock lock(&mu_);
    held_.clear();
    current_.clear();
    changed_.SignalAll();
  }
  threads_.clear();
}

void Prefetcher::Adopt(const std::string& current, const std::vector<v1::Lease>& next) {
  absl::MutexLock lock(&mu_);
  current_ = current;
  std::vector<Held> wanted;
  for (const v1::Lease& lease : next) {
    if (static_cast<int>(wanted.size()) == most()) break;
    if (!lease.has_evaluation()) continue;
    const auto known = std::find_if(held_.begin(), held_.end(), [&](const Held& held) {
      return held.lease.id() == lease.id();
    });
    wanted.push_back({.lease = lease, .is_begun = known != held_.end() && known->is_begun});
  }
  held_ = std::move(wanted);
  changed_.SignalAll();
}

std::vector<std::string> Prefetcher::held() const {
  absl::MutexLock lock(&mu_);
  std::vector<std::string> ids;
  for (const Held& held : held_) ids.push_back(held.lease.id());
  return ids;
}

void Prefetcher::Await(const std::string& id, const std::function<bool()>& is_cancelled) {
  absl::MutexLock lock(&mu_);
  // One that no thread has begun is not worth waiting for: who waits does it as fast.
  while (preparing_.contains(id) && !is_cancelled()) changed_.WaitWithTimeout(&mu_, kPollSlice);
}

Prefetcher::Held* Prefetcher::FindUnbegun() {
  const auto found =
      std::find_if(held_.begin(), held_.end(), [](const Held& held) { return !held.is_begun; });
  return found == held_.end() ? nullptr : &*found;
}

bool Prefetcher::IsWanted(const std::string& id) const {
  absl::MutexLock lock(&mu_);
  return current_ == id || std::any_of(held_.begin(), held_.end(),
                                       [&](const Held& held) { return held.lease.id() == id; });
}

void Prefetcher::PrepareUntilStopped(const std::stop_token& stop) {
  while (true) {
    v1::Lease lease;
    {
      absl::MutexLock lock(&mu_);
      while (!stop.stop_requested() && FindUnbegun() == nullptr) changed_.Wait(&mu_);
      if (stop.stop_requested()) return;
      Held& next = *FindUnbegun();
      next.is_begun = true;
      lease = next.lease;
      preparing_.insert(lease.id());
    }
    options_.prepare(lease, [&] { return !IsWanted(lease.id()); });
    absl::MutexLock lock(&mu_);
    preparing_.erase(lease.id());
    changed_.SignalAll();
  }
}

}  // namespace mtmc::worker
