// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/unit_cache.h"

namespace mtmc::worker {

std::optional<std::string> UnitCache::Find(const std::string& key) {
  absl::MutexLock lock(&mu_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void UnitCache::Put(const std::string& key, const std::string& binary) {
  absl::MutexLock lock(&mu_);
  if (by_key_.contains(key)) return;
  entries_.emplace_front(key, binary);
  by_key_[key] = entries_.begin();
  bytes_ += binary.size();
  while (bytes_ > max_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().second.size();
    by_key_.erase(entries_.back().first);
    entries_.pop_back();
  }
}

}  // namespace mtmc::worker
