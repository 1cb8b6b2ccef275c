// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mtmc::base {

// Values by key, those that were used longest ago dropped first. Thread-safe.
template <typename Value>
class LruCache {
 public:
  // Of all values together, but for the newest, which stays however large it is.
  explicit LruCache(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // A copy; absent where there is none.
  std::optional<Value> Find(const std::string& key) {
    absl::MutexLock lock(&mu_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  // Keeps `value`, which takes so many bytes, unless the key has one.
  void Put(const std::string& key, Value value, int64_t bytes) {
    absl::MutexLock lock(&mu_);
    if (by_key_.contains(key)) return;
    entries_.push_front({key, std::move(value), bytes});
    by_key_[key] = entries_.begin();
    bytes_ += bytes;
    while (bytes_ > max_bytes_ && entries_.size() > 1) {
      bytes_ -= entries_.back().bytes;
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
  }

 private:
  struct Entry {
    std::string key;
    Value value;
    int64_t bytes;
  };

  const int64_t max_bytes_;
  absl::Mutex mu_;
  // Most recently used first.
  std::list<Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, typename std::list<Entry>::iterator> by_key_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace mtmc::base
