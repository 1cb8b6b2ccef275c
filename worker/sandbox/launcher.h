// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "worker/sandbox/launch_spec.h"

namespace mtmc::worker {

// Puts the mechanisms of `spec` on this process and becomes the program `argv`
// (null-terminated, its first element an absolute path). A process of its own
// does that, and not the program's first lines, for three reasons: a user
// namespace can only be made by a process with one thread, a pid namespace takes
// a fork, and Python and the compilers are confined without a word in them.
//
// The order, each step needing the rights that a later one gives up:
//   namespaces, root, identity, capabilities, no_new_privs, limits, Landlock,
//   seccomp, exec.
//
// Returns only with the reason why the program was not started; or, in the
// processes of a pid namespace, prints it and exits with kLauncherFailed.
absl::Status Launch(const LaunchSpec& spec, char** argv);

}  // namespace mtmc::worker
