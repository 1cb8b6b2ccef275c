// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/doctor.h"

#include <dlfcn.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/file.h"
#include "common/config/paths.h"
#include "worker/daemon/child_trial.h"
#include "worker/daemon/host_traps.h"
#include "worker/opencl/device_names.h"
#include "worker/sandbox/isolation.h"

namespace mtmc::worker {
namespace {

using State = HostCheck::State;

// Tensors of CPU problems are shared as files; this much holds the usual ones.
constexpr uint64_t kEnoughSharedBytes = uint64_t{2} << 30;

HostCheck CheckPython(const absl::StatusOr<config::PythonEnvironment>& python) {
  if (!python.ok()) {
    return {"python", State::kMissing, std::string(python.status().message()),
            "run scripts/setup, or set MTMC_PYTHON to an interpreter that has PyTorch 2.11"};
  }
  const bool is_tried = absl::StartsWith(python->torch_version, "2.11");
  return {"python", is_tried ? State::kPresent : State::kDegraded,
          absl::StrCat("Python ", python->python_version, " with PyTorch ", python->torch_version,
                       " at ", python->python.string()),
          is_tried
              ? ""
              : "library calls need the libtorch that mtmc was built with; install torch==2.11.0"};
}

HostCheck CheckOpenCl() {
  const auto devices = ListOpenClDeviceNames();
  if (!devices.ok()) {
    return {"opencl", State::kMissing, std::string(devices.status().message()),
            "apt-get install pocl-opencl-icd ocl-icd-libopencl1"};
  }
  std::string names;
  for (const std::string& name : *devices) absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  return {"opencl", State::kPresent, names, ""};
}

bool CanOpen(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

HostCheck CheckCudaDriver() {
  if (!CanOpen("libcuda.so.1")) {
    return {"cuda.driver", State::kMissing, "libcuda.so.1 cannot be opened",
            "install the NVIDIA driver (580 or later) to use a GPU; the OpenCL path works without"};
  }
  return {"cuda.driver", State::kPresent, "libcuda.so.1", ""};
}

HostCheck CheckLibrary(std::string name, const std::filesystem::path& path, std::string remedy) {
  if (path.empty() || !std::filesystem::exists(path)) {
    return {std::move(name), State::kMissing, "not found beside PyTorch", std::move(remedy)};
  }
  return {std::move(name), State::kPresent, path.string(), ""};
}

// The driver's own switch; without it only root reads counters.
HostCheck CheckCounters() {
  const auto parameters = base::ReadFile("/proc/driver/nvidia/params");
  if (!parameters.ok()) {
    return {"counters", State::kMissing, "no NVIDIA driver is loaded",
            "hardware counters need an NVIDIA GPU; times do not"};
  }
  const bool is_restricted = absl::StrContains(*parameters, "RmProfilingAdminOnly: 1");
  if (!is_restricted || ::geteuid() == 0) return {"counters", State::kPresent, "readable", ""};
  return {"counters", State::kDegraded, "only an administrator may read them",
          "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or give the worker "
          "CAP_SYS_ADMIN"};
}

// How to get a mechanism that the host forbids.
std::string RemedyOf(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kUserNamespace:
    case Mechanism::kMountNamespace:
    case Mechanism::kNetworkNamespace:
    case Mechanism::kIpcNamespace:
      return "allow user namespaces (sysctl user.max_user_namespaces, "
             "kernel.apparmor_restrict_unprivileged_userns=0), or give the container "
             "CAP_SYS_ADMIN and a seccomp profile that allows unshare and mount";
    case Mechanism::kPidNamespace:
      return "as for the other namespaces; in a container /proc must not be covered either "
             "(docker run --security-opt systempaths=unconfined)";
    case Mechanism::kLandlock:
      return "use a kernel with CONFIG_SECURITY_LANDLOCK and landlock in its lsm= list";
    case Mechanism::kSeccomp:
      return "use a kernel with CONFIG_SECCOMP_FILTER";
    default:
      return "the container's security profile forbids it";
  }
}

HostCheck CheckMechanism(Mechanism mechanism, const Isolation& isolation) {
  std::string name(NameOf(mechanism));
  if (isolation.mechanisms.contains(mechanism)) {
    return {std::move(name), State::kPresent, "allowed, tried", ""};
  }
  const std::string& why = isolation.missing.at(name);
  return {std::move(name), State::kDegraded, why, RemedyOf(mechanism)};
}

HostCheck CheckLevel(const Isolation& isolation) {
  const IsolationLevel level = isolation.level();
  const bool is_best = level == IsolationLevel::kConfined;
  return {"isolation", is_best ? State::kPresent : State::kDegraded, std::string(NameOf(level)),
          is_best ? "" : "see the lines below; docs/security.md says what each level keeps out"};
}

HostCheck CheckSharedMemory() {
  struct statvfs space {};

  if (::statvfs("/dev/shm", &space) != 0) {
    return {"shared-memory", State::kDegraded, "/dev/shm is not there",
            "mount a tmpfs at /dev/shm"};
  }
  const uint64_t bytes = static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
  const bool is_enough = bytes >= kEnoughSharedBytes;
  return {
      "shared-memory", is_enough ? State::kPresent : State::kDegraded,
      absl::StrFormat("%.1f GB free in /dev/shm", static_cast<double>(bytes) / 1e9),
      is_enough ? "" : "raise its size (docker run --shm-size=4g) to share tensors without a disk"};
}

std::string_view ToText(State state) {
  switch (state) {
    case State::kPresent:
      return "present";
    case State::kDegraded:
      return "degraded";
    case State::kMissing:
      return "missing";
  }
  return "";
}

}  // namespace

std::vector<HostCheck> ExamineHost(const absl::StatusOr<config::PythonEnvironment>& python,
                                   const std::string& aten_plugin) {
  std::vector<HostCheck> checks = {CheckPython(python), CheckOpenCl(), CheckCudaDriver()};
  const config::PythonEnvironment environment = python.value_or(config::PythonEnvironment());
  checks.push_back(CheckLibrary("cuda.nvrtc", environment.nvrtc_library,
                                "install the CUDA build of PyTorch 2.11, which brings NVRTC"));
  checks.push_back(CheckLibrary("cuda.cupti", environment.cupti_library,
                                "install the CUDA build of PyTorch 2.11, which brings CUPTI"));
  checks.push_back(CheckLibrary("library-calls", aten_plugin,
                                "build with MTMC_WITH_TORCH=ON; without it 'call' is refused"));
  checks.push_back(CheckCounters());
  checks.push_back(CheckSharedMemory());
  for (HostCheck& check : FindTraps(ReadHostFacts())) checks.push_back(std::move(check));
  const std::string launcher = (config::ProgramDir() / "mtmc-sandbox").string();
  const Isolation isolation =
      DecideIsolation(launcher, ProbeHost(launcher), IsolationLevel::kConfined);
  checks.push_back(CheckLevel(isolation));
  for (const Mechanism mechanism : kAllMechanisms) {
    checks.push_back(CheckMechanism(mechanism, isolation));
  }
  if (!python.ok()) return checks;
  for (HostCheck& check : TryChildren(environment, isolation)) checks.push_back(std::move(check));
  return checks;
}

std::string ToJson(const std::vector<HostCheck>& checks) {
  nlohmann::json list = nlohmann::json::array();
  for (const HostCheck& check : checks) {
    list.push_back({{"name", check.name},
                    {"state", ToText(check.state)},
                    {"detail", check.detail},
                    {"remedy", check.remedy}});
  }
  return nlohmann::json{{"checks", std::move(list)}}.dump(2) + "\n";
}

}  // namespace mtmc::worker
