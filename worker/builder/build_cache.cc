// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/build_cache.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "worker/builder/cached_build.h"

namespace mtmc::worker {
namespace {

namespace fs = std::filesystem;

struct CacheFile {
  fs::path path;
  fs::file_time_type time;
  int64_t bytes = 0;
};

std::vector<CacheFile> FilesIn(const std::string& folder) {
  std::vector<CacheFile> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    CacheFile file{.path = entry.path(), .time = entry.last_write_time(error)};
    const auto bytes = entry.file_size(error);
    file.bytes = error ? 0 : static_cast<int64_t>(bytes);
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

BuildCache::BuildCache(Options options)
    : options_(std::move(options)), in_memory_(options_.max_memory_bytes) {}

std::string BuildCache::PathOf(const std::string& key) const {
  return absl::StrCat(options_.folder, "/", key);
}

std::optional<pipe::v1::BuilderResponse::Built> BuildCache::Find(const std::string& key) {
  if (auto found = in_memory_.Find(key)) return found;
  if (options_.folder.empty()) return std::nullopt;
  auto found = FindOnDisk(key);
  if (found) PutInMemory(key, *found);
  return found;
}

void BuildCache::Put(const std::string& key, const pipe::v1::BuilderResponse::Built& built) {
  PutInMemory(key, built);
  if (options_.folder.empty() || built.has_failure()) return;
  const std::string bytes = ToCacheFile(built);
  MakeRoomOnDisk(static_cast<int64_t>(bytes.size()));
  // A cache that cannot be written costs time, not results.
  const absl::Status written = base::WriteFileAtomically(PathOf(key), bytes);
  if (!written.ok()) {
    base::Log(base::LogLevel::kWarning, "build not cached", {{"error", written}});
  }
}

std::optional<pipe::v1::BuilderResponse::Built> BuildCache::FindOnDisk(const std::string& key) {
  const std::string path = PathOf(key);
  const auto bytes = base::ReadFile(path);
  if (!bytes.ok()) return std::nullopt;
  std::error_code ignored;
  auto built = ParseCacheFile(*bytes);
  if (!built.ok()) {
    base::Log(base::LogLevel::kWarning, "cached build dropped",
              {{"path", path}, {"reason", built.status()}});
    fs::remove(path, ignored);
    return std::nullopt;
  }
  // The files used longest ago go first.
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return *std::move(built);
}

void BuildCache::PutInMemory(const std::string& key,
                             const pipe::v1::BuilderResponse::Built& built) {
  in_memory_.Put(key, built, static_cast<int64_t>(built.ByteSizeLong()));
}

// Drops the oldest files down to three quarters of the bound, so that this is
// not done for every build. Files of a killed writer are dropped like others.
void BuildCache::MakeRoomOnDisk(int64_t bytes) {
  absl::MutexLock lock(&mu_);
  if (disk_bytes_ && *disk_bytes_ + bytes <= options_.max_disk_bytes) {
    *disk_bytes_ += bytes;
    return;
  }
  std::vector<CacheFile> files = FilesIn(options_.folder);
  std::sort(files.begin(), files.end(),
            [](const CacheFile& a, const CacheFile& b) { return a.time < b.time; });
  int64_t total = bytes;
  for (const CacheFile& file : files) total += file.bytes;
  if (total > options_.max_disk_bytes) {
    for (const CacheFile& file : files) {
      if (total <= options_.max_disk_bytes / 4 * 3) break;
      std::error_code ignored;
      fs::remove(file.path, ignored);
      total -= file.bytes;
    }
  }
  disk_bytes_ = total;
}

}  // namespace mtmc::worker
