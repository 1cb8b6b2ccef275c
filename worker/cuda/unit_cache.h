// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mtmc::worker {

// Binaries of parts of programs, by a digest of all that they were made from: the steps of a search
// change few kernels of a network. The ones used longest ago go first. Thread-safe.
class UnitCache {
 public:
  explicit UnitCache(size_t max_bytes = size_t{64} << 20) : max_bytes_(max_bytes) {}

  std::optional<std::string> Find(const std::string& key);

  void Put(const std::string& key, const std::string& binary);

 private:
  using Entries = std::list<std::pair<std::string, std::string>>;

  const size_t max_bytes_;
  absl::Mutex mu_;
  // Keys with their binaries; the one used last is first.
  Entries entries_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Entries::iterator> by_key_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace mtmc::worker
