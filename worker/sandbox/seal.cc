// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/seal.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>

#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/sandbox/system_calls.h"

namespace mtmc::worker {

absl::StatusOr<std::vector<std::string>> Seal(SealedDevice device) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return base::SystemError(errno, "set no_new_privs");
  }
  const bool is_host = device == SealedDevice::kHost;
  std::vector<int> calls(SealedCalls().begin(), SealedCalls().end());
  if (!is_host) {
    const auto more = SealedProcessAndFileCalls();
    calls.insert(calls.end(), more.begin(), more.end());
  }
  const absl::Status loaded = LoadSeal(calls, /*refuses_processes=*/!is_host);
  if (!loaded.ok()) return absl::UnavailableError(loaded.message());
  return std::vector<std::string>{is_host ? "seal.host" : "seal.cuda"};
}

std::vector<std::string> HardenDaemon() {
  std::vector<std::string> in_force;
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  if (setrlimit(RLIMIT_CORE, &none) == 0) in_force.emplace_back("daemon.no-core");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    in_force.emplace_back("daemon.no-new-privileges");
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0) in_force.emplace_back("daemon.closed-memory");
#endif
  return in_force;
}

}  // namespace mtmc::worker
