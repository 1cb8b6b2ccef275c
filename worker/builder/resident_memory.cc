// SPDX-License-Identifier: Apache-2.0
#include "worker/builder/resident_memory.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/cgroup.h"

namespace mtmc::worker {
namespace {

// A tree that grows while it is walked must not hold the walker.
constexpr size_t kMaxProcesses = 4096;

int64_t ResidentBytes(pid_t process) {
  static const int64_t page = ::sysconf(_SC_PAGESIZE);
  std::ifstream file(absl::StrCat("/proc/", process, "/statm"));
  int64_t total = 0;
  int64_t resident = 0;
  return file >> total >> resident ? resident * page : 0;
}

}  // namespace

std::vector<pid_t> ChildrenOf(pid_t process) {
  std::vector<pid_t> children;
  const std::string folder = absl::StrCat("/proc/", process, "/task");
  DIR* tasks = ::opendir(folder.c_str());
  if (!tasks) return children;
  // Each thread has children of its own.
  while (const dirent* entry = ::readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream file(absl::StrCat(folder, "/", entry->d_name, "/children"));
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  ::closedir(tasks);
  return children;
}

int64_t ResidentBytesOfTree(pid_t root) {
  std::vector<pid_t> processes = {root};
  int64_t bytes = 0;
  for (size_t i = 0; i < std::min(processes.size(), kMaxProcesses); ++i) {
    bytes += ResidentBytes(processes[i]);
    const std::vector<pid_t> children = ChildrenOf(processes[i]);
    processes.insert(processes.end(), children.begin(), children.end());
  }
  return bytes;
}

int64_t HostMemoryBytes() {
  const int64_t machine = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return std::min(machine, base::ReadCgroupLimits().memory_bytes.value_or(machine));
}

}  // namespace mtmc::worker
