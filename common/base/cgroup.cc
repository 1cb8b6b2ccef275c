// SPDX-License-Identifier: Apache-2.0
#include "common/base/cgroup.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"

namespace mtmc::base {
namespace {

// Version 1 has no word for "no limit", but a number that no machine has.
constexpr int64_t kUnlimitedBytes = int64_t{1} << 60;

std::vector<std::string> Words(const std::filesystem::path& file) {
  const auto text = ReadFile(file);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

std::optional<int64_t> Number(const std::vector<std::string>& words, size_t position) {
  int64_t number = 0;
  if (position >= words.size() || !absl::SimpleAtoi(words[position], &number) || number <= 0) {
    return std::nullopt;
  }
  return number;
}

template <typename T>
void Lower(std::optional<T>& least, std::optional<T> limit) {
  if (limit && (!least || *limit < *least)) least = limit;
}

void LowerMemory(CgroupLimits& limits, std::optional<int64_t> bytes) {
  if (bytes && *bytes < kUnlimitedBytes) Lower(limits.memory_bytes, bytes);
}

void LowerCores(CgroupLimits& limits, std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period) return;
  Lower<double>(limits.cores, static_cast<double>(*quota) / static_cast<double>(*period));
}

// Limits of one group; files of the other version are not there.
void AddGroup(const std::filesystem::path& group, CgroupLimits& limits) {
  LowerMemory(limits, Number(Words(group / "memory.max"), 0));
  LowerMemory(limits, Number(Words(group / "memory.limit_in_bytes"), 0));
  const std::vector<std::string> cores = Words(group / "cpu.max");
  LowerCores(limits, Number(cores, 0), Number(cores, 1));
  LowerCores(limits, Number(Words(group / "cpu.cfs_quota_us"), 0),
             Number(Words(group / "cpu.cfs_period_us"), 0));
}

}  // namespace

CgroupLimits ReadCgroupLimits(const std::filesystem::path& root) {
  CgroupLimits limits;
  const auto groups = ReadFile(root / "proc/self/cgroup");
  if (!groups.ok()) return limits;
  // HIERARCHY:CONTROLLERS:PATH; version 2 names no controllers.
  for (const auto line : absl::StrSplit(*groups, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::filesystem::path mount = root / "sys/fs/cgroup" / parts[1];
    // A container may see its own group as the root, and by a path that is not there.
    std::filesystem::path path(std::string(absl::StripPrefix(parts[2], "/")));
    for (; !path.empty(); path = path.parent_path()) AddGroup(mount / path, limits);
    AddGroup(mount, limits);
  }
  return limits;
}

}  // namespace mtmc::base
