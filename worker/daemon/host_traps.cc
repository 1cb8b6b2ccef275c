// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/host_traps.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace mtmc::worker {
namespace {

using State = HostCheck::State;

// PyTorch in the reference process, libtorch in a runner and its spare, and compilers,
// beside the tensors of a small problem.
constexpr int64_t kEnoughMemoryBytes = int64_t{4} << 30;
// One that measures, one for all that goes on beside it.
constexpr double kEnoughCores = 2;
// Pipes to some ten children, files of shared tensors, a connection and its sockets.
constexpr uint64_t kEnoughOpenFiles = 1024;

bool IsWithin(absl::string_view path, absl::string_view folder) {
  if (folder == "/") return true;
  return absl::StartsWith(path, folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

// Whether what `path` lies on is mounted noexec: the innermost mount, and of several at one
// place the last.
bool IsNoexec(absl::string_view mounts, absl::string_view path) {
  size_t innermost = 0;
  bool is_noexec = false;
  for (const absl::string_view line : absl::StrSplit(mounts, '\n', absl::SkipEmpty())) {
    // DEVICE FOLDER TYPE OPTIONS
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() < 4 || !IsWithin(path, words[1]) || words[1].size() < innermost) continue;
    innermost = words[1].size();
    const std::vector<absl::string_view> options = absl::StrSplit(words[3], ',');
    is_noexec = std::find(options.begin(), options.end(), "noexec") != options.end();
  }
  return is_noexec;
}

HostCheck CheckExec(std::string name, const std::string& folder, const HostFacts& facts) {
  if (!IsNoexec(facts.mounts, folder)) {
    return {std::move(name), State::kPresent, absl::StrCat(folder, " may hold programs"), ""};
  }
  return {std::move(name), State::kDegraded,
          absl::StrCat(folder, " is mounted noexec: programs of a CPU cannot be loaded from it"),
          absl::StrCat("mount -o remount,exec ", folder, "; for a container --tmpfs=", folder,
                       ":exec")};
}

// The first number of the list that no GPU has, behind which the driver stops to read; empty
// if there is none. A GPU may also be named by its UUID, which is believed.
absl::string_view FirstUnknown(absl::string_view visible, int num_gpus) {
  for (const absl::string_view one : absl::StrSplit(visible, ',')) {
    int number = 0;
    if (absl::SimpleAtoi(one, &number) && (number < 0 || number >= num_gpus)) return one;
  }
  return "";
}

HostCheck CheckVisible(const HostFacts& facts) {
  const std::string gpus = absl::StrCat(facts.num_gpus, facts.num_gpus == 1 ? " GPU" : " GPUs");
  if (!facts.visible_gpus) {
    if (!facts.is_slurm_job) return {"gpu.visible", State::kPresent, gpus, ""};
    return {"gpu.visible", State::kDegraded,
            absl::StrCat(gpus, " without CUDA_VISIBLE_DEVICES: this job of Slurm was given none"),
            "ask for one, --gres=gpu:1; otherwise the worker takes one that another job has"};
  }
  const std::string& visible = *facts.visible_gpus;
  const std::string detail = absl::StrCat(gpus, ", CUDA_VISIBLE_DEVICES=", visible);
  if (visible.empty() || visible == "NoDevFiles" || absl::StartsWith(visible, "-")) {
    return {"gpu.visible", State::kMissing, absl::StrCat(detail, " hides all of them"),
            facts.is_slurm_job ? "ask Slurm for a GPU, --gres=gpu:1"
                               : "unset CUDA_VISIBLE_DEVICES, or name a GPU of nvidia-smi -L"};
  }
  const absl::string_view unknown = FirstUnknown(visible, facts.num_gpus);
  if (!unknown.empty()) {
    const bool is_first = absl::StartsWith(visible, unknown);
    return {"gpu.visible", is_first ? State::kMissing : State::kDegraded,
            absl::StrCat(detail, ": there is no GPU ", unknown, ", and none behind it is seen"),
            "count from 0 among the GPUs that this host or container shows, or use a UUID of "
            "nvidia-smi -L"};
  }
  return {"gpu.visible", State::kPresent, detail, ""};
}

HostCheck CheckWhole(const HostFacts& facts) {
  if (facts.has_mps) {
    return {"gpu.whole", State::kDegraded,
            "MPS runs: others may use the GPU while a kernel is timed, and confined children do "
            "not reach its pipe",
            "stop it on this host: echo quit | nvidia-cuda-mps-control"};
  }
  const bool names_slice = facts.visible_gpus && absl::StartsWith(*facts.visible_gpus, "MIG-");
  if (facts.num_gpu_slices > 0 && !names_slice) {
    return {"gpu.whole", State::kDegraded,
            absl::StrCat("MIG has made ", facts.num_gpu_slices,
                         " parts of the GPU, of which the driver shows one"),
            "one worker for each part, CUDA_VISIBLE_DEVICES=MIG-... of nvidia-smi -L"};
  }
  return {
      "gpu.whole", State::kPresent,
      names_slice ? "a part of a GPU, by MIG: times are those of the part" : "neither MIG nor MPS",
      ""};
}

HostCheck CheckMemory(const HostFacts& facts) {
  const int64_t bytes =
      std::min(facts.memory_bytes, facts.limits.memory_bytes.value_or(facts.memory_bytes));
  std::string detail = absl::StrFormat("%.1f GB", static_cast<double>(bytes) / 1e9);
  if (bytes < facts.memory_bytes) {
    absl::StrAppendFormat(&detail, ", the limit of a control group; the machine has %.1f GB",
                          static_cast<double>(facts.memory_bytes) / 1e9);
  }
  if (bytes >= kEnoughMemoryBytes) return {"memory", State::kPresent, detail, ""};
  return {"memory", State::kDegraded, detail,
          "a worker wants 4 GB and more: PyTorch is loaded by several processes (--memory of a "
          "container, resources.limits of a pod, --mem of Slurm, MemoryMax of a unit)"};
}

HostCheck CheckCores(const HostFacts& facts) {
  const double cores =
      std::min<double>(facts.num_cores, facts.limits.cores.value_or(facts.num_cores));
  const std::string detail = absl::StrFormat("%g may be used", cores);
  if (cores >= kEnoughCores) return {"cores", State::kPresent, detail, ""};
  return {"cores", State::kDegraded, detail,
          "a worker wants 2 cores and more, or it waits for itself while it measures (--cpus of a "
          "container, resources.limits of a pod, --cpus-per-task of Slurm, CPUQuota of a unit)"};
}

HostCheck CheckOpenFiles(const HostFacts& facts) {
  const std::string detail = absl::StrCat(facts.max_open_files, " descriptors");
  if (facts.max_open_files >= kEnoughOpenFiles) return {"open-files", State::kPresent, detail, ""};
  return {"open-files", State::kDegraded, detail,
          "ulimit -n 1024 or more (LimitNOFILE of a unit, --ulimit of a container)"};
}

HostCheck CheckLate(std::string name, bool is_there, absl::string_view variable,
                    absl::string_view package) {
  if (is_there) return {std::move(name), State::kPresent, "can be loaded", ""};
  return {std::move(name), State::kMissing,
          absl::StrCat(variable, " wants it, and it cannot be loaded"),
          absl::StrCat("apt-get install ", package)};
}

}  // namespace

std::vector<HostCheck> FindTraps(const HostFacts& facts) {
  std::vector<HostCheck> checks = {CheckExec("shm.exec", "/dev/shm", facts),
                                   CheckExec("tmp.exec", facts.temporary_folder, facts)};
  if (facts.num_gpus > 0) {
    checks.push_back(CheckVisible(facts));
    checks.push_back(CheckWhole(facts));
  }
  checks.push_back(CheckMemory(facts));
  checks.push_back(CheckCores(facts));
  checks.push_back(CheckOpenFiles(facts));
  if (!facts.store.empty()) {
    checks.push_back(CheckLate("libpq", facts.has_libpq, "MTMC_STORE", "libpq5"));
  }
  if (absl::StartsWith(facts.artifacts, "s3://")) {
    checks.push_back(CheckLate("libcurl", facts.has_libcurl, "MTMC_ARTIFACTS", "libcurl4"));
  }
  return checks;
}

}  // namespace mtmc::worker
