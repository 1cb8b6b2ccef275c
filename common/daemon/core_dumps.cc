// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/core_dumps.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>

#include "absl/status/status.h"
#include "common/base/log.h"

namespace mtmc::daemon {

void ForbidCoreDumps() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  bool is_forbidden = setrlimit(RLIMIT_CORE, &none) == 0;
  // A limit does not hold for a program that the kernel pipes the dump to. Sanitizers read
  // the process from outside.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  is_forbidden = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && is_forbidden;
#endif
  if (is_forbidden) return;
  base::Log(base::LogLevel::kWarning, "core dumps cannot be switched off",
            {{"error", absl::ErrnoToStatus(errno, "setrlimit")}});
}

}  // namespace mtmc::daemon
