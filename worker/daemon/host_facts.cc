// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/host_facts.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace mtmc::worker {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

bool CanLoad(const char* library) {
  void* handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

// Entries of `folder` that are `prefix` and a number.
int CountNumbered(const std::filesystem::path& folder, const std::string& prefix) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_numbered =
        absl::StartsWith(name, prefix) && name.size() > prefix.size() &&
        std::all_of(name.begin() + static_cast<ptrdiff_t>(prefix.size()), name.end(),
                    [](unsigned char letter) { return std::isdigit(letter) != 0; });
    if (is_numbered) ++count;
  }
  return count;
}

// The driver has a folder for each instance of MIG, and none for GPUs that are whole.
int CountSlices(int num_gpus) {
  int count = 0;
  for (int gpu = 0; gpu < num_gpus; ++gpu) {
    count += CountNumbered(absl::StrCat("/proc/driver/nvidia/capabilities/gpu", gpu, "/mig"), "gi");
  }
  return count;
}

int NumCores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

uint64_t MaxOpenFiles() {
  struct rlimit limit {};

  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace

HostFacts ReadHostFacts() {
  HostFacts facts;
  facts.mounts = base::ReadFile("/proc/self/mounts").value_or("");
  facts.temporary_folder = Variable("TMPDIR").value_or("/tmp");
  facts.num_gpus = CountNumbered("/dev", "nvidia");
  facts.num_gpu_slices = CountSlices(facts.num_gpus);
  std::error_code error;
  facts.has_mps = std::filesystem::exists(
      Variable("CUDA_MPS_PIPE_DIRECTORY").value_or("/tmp/nvidia-mps") + "/control", error);
  facts.visible_gpus = Variable("CUDA_VISIBLE_DEVICES");
  facts.is_slurm_job = Variable("SLURM_JOB_ID").has_value();
  facts.memory_bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  facts.num_cores = NumCores();
  facts.limits = base::ReadCgroupLimits();
  facts.max_open_files = MaxOpenFiles();
  facts.store = Variable("MTMC_STORE").value_or("");
  facts.artifacts = Variable("MTMC_ARTIFACTS").value_or("");
  facts.has_libpq = CanLoad("libpq.so.5");
  facts.has_libcurl = CanLoad("libcurl.so.4");
  return facts;
}

}  // namespace mtmc::worker
