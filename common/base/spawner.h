// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::base {

// A process to be made, with everything decided: what remains is async-signal-
// safe. Internal to subprocess.cc.
struct SpawnRequest {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  // Empty: the parent's.
  std::string working_folder;
  // Pairs (descriptor of the parent, number in the child).
  std::vector<std::pair<int, int>> fds;
};

// Forks and executes on a thread that lives as long as the process, because
// Linux sends the parent-death signal when the *thread* that forked ends.
// Returns once the program runs or has failed to. Thread-safe.
absl::StatusOr<pid_t> Spawn(const SpawnRequest& request);

}  // namespace mtmc::base
