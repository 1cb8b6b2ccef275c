// SPDX-License-Identifier: Apache-2.0
#include "common/base/cgroup.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"

namespace mtmc::base {
namespace {

// What a process finds in a tree of these files.
CgroupLimits LimitsOf(const std::map<std::string, std::string>& files) {
  const TempDir root = *TempDir::Create("cgroup");
  for (const auto& [path, text] : files) {
    REQUIRE_THAT(WriteFileAtomically(root.path() / path, text), testing::IsOk());
  }
  return ReadCgroupLimits(root.path());
}

}  // namespace

TEST_CASE("Cgroup limits of version 2 are the least of all groups around the process", "[base]") {
  const CgroupLimits limits = LimitsOf({
      {"proc/self/cgroup", "0::/batch/job\n"},
      {"sys/fs/cgroup/batch/job/memory.max", "max\n"},
      {"sys/fs/cgroup/batch/memory.max", "4000\n"},
      {"sys/fs/cgroup/memory.max", "8000\n"},
      {"sys/fs/cgroup/batch/job/cpu.max", "150000 100000\n"},
      {"sys/fs/cgroup/batch/cpu.max", "max 100000\n"},
  });

  CHECK(limits.memory_bytes == 4000);
  CHECK(limits.cores == 1.5);
}

TEST_CASE(
    "Cgroup limits of version 1 lie by controller, also where the path is another namespace's",
    "[base]") {
  const CgroupLimits limits = LimitsOf({
      {"proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n"},
      {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n"},
      {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
  });

  CHECK(limits.memory_bytes == 6000);
  CHECK(limits.cores == 2.0);
}

TEST_CASE("Cgroup limits that say there is none are none", "[base]") {
  const CgroupLimits limits = LimitsOf({
      {"proc/self/cgroup", "4:memory:/\n3:cpu:/\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
      {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
  });

  CHECK_FALSE(limits.memory_bytes);
  CHECK_FALSE(limits.cores);
  CHECK_FALSE(LimitsOf({}).memory_bytes);
}

}  // namespace mtmc::base
