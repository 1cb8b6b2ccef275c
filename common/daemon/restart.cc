// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/restart.h"

#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/daemon/exit_code.h"

namespace mtmc::daemon {
namespace {

// By its name, which the process then keeps; a program that was replaced meanwhile has none.
std::string OwnProgram() {
  const std::string link = "/proc/self/exe";
  std::string path(4096, '\0');
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  if (length <= 0) return link;
  path.resize(static_cast<size_t>(length));
  return ::access(path.c_str(), X_OK) == 0 ? path : link;
}

}  // namespace

void RestartProcess() {
  const absl::StatusOr<std::string> line = base::ReadFile("/proc/self/cmdline");
  if (line.ok()) {
    // Each argument ends with a zero byte.
    std::vector<std::string> arguments = absl::StrSplit(*line, '\0');
    arguments.pop_back();
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    // A library may have left open what would hold the port that is listened at.
    ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execv(OwnProgram().c_str(), pointers.data());
  }
  base::Log(base::LogLevel::kError, "cannot begin anew, ends",
            {{"error", line.ok() ? absl::ErrnoToStatus(errno, "execv") : line.status()}});
  ::_exit(kExitUnavailable);
}

}  // namespace mtmc::daemon
