// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "worker/sandbox/rights.h"

namespace mtmc::worker {

// Folders that are empty, private and bounded in a minimal root.
inline constexpr const char* kPrivateFolders[] = {"/tmp", "/dev/shm"};

// Replaces the root of this mount namespace by an empty one that holds what
// `rights` names at the same paths: readable things read-only, writable folders
// as they are, device files, and a /proc. Nothing of the old root stays
// reachable. The working folder is the new root afterwards.
//
// `has_own_processes`: a fresh /proc is mounted, for which this process must be
// in the new pid namespace; otherwise the host's.
//
// REQUIRES: a mount namespace of its own, and the right to mount in it. Needs
// Linux 5.12. After a failure the root is in no defined state: exit.
absl::Status EnterMinimalRoot(const Rights& rights, bool has_own_processes);

}  // namespace mtmc::worker
