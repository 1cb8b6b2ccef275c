// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/lru_cache.h"
#include "mtmc/pipe/v1/builder.pb.h"

namespace mtmc::worker {

// Builds by key (BuildKey), least recently used ones dropped first: in memory,
// and the binaries also as files that outlive the process. A file that is not
// what was written is removed and built again. Thread-safe.
class BuildCache {
 public:
  struct Options {
    // Made at the first write; empty keeps builds in memory only.
    std::string folder;
    int64_t max_memory_bytes = int64_t{256} << 20;
    int64_t max_disk_bytes = int64_t{1} << 30;
  };

  explicit BuildCache(Options options);

  std::optional<pipe::v1::BuilderResponse::Built> Find(const std::string& key);

  // Failures are kept in memory only: they are cheap to find again, and the next
  // process may run with more time and memory.
  void Put(const std::string& key, const pipe::v1::BuilderResponse::Built& built);

 private:
  std::optional<pipe::v1::BuilderResponse::Built> FindOnDisk(const std::string& key);
  void PutInMemory(const std::string& key, const pipe::v1::BuilderResponse::Built& built);
  void MakeRoomOnDisk(int64_t bytes);
  std::string PathOf(const std::string& key) const;

  const Options options_;
  base::LruCache<pipe::v1::BuilderResponse::Built> in_memory_;
  absl::Mutex mu_;
  // Of all files; absent before the first write.
  std::optional<int64_t> disk_bytes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::worker
