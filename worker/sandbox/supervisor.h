// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>

#include "absl/status/status.h"

namespace mtmc::worker {

// Runs `program` in a new pid namespace, as a grandchild of this process:
//
//   launcher (outside) -> init (number 1) -> program (the launcher's own number)
//
// Init does nothing but reap: a process with number 1 ignores signals that it
// does not handle, so a program in its place could not abort(). The program's
// number is the launcher's, so that no two parties of a worker ever have the
// same one; where the kernel refuses that, it is 2.
//
// Returns only if the namespace could not be made. Otherwise this process ends
// as the program did: with its exit code, or by its signal, and not before every
// process of the namespace is gone. It leaves its process group, so that a kill
// of the group reaches the program and is reported as its end. If this process is
// killed, the kernel kills init and with it the namespace.
//
// REQUIRES: one thread, and unshare(CLONE_NEWPID) was called. `prepare` runs in
// init before the program is made, `settle` in init afterwards, `become` in the
// program, which it does not leave; each reports what fails and calls _exit.
struct NamespaceSteps {
  std::function<void()> prepare;
  std::function<void()> settle;
  std::function<void()> become;
};

absl::Status Supervise(const NamespaceSteps& steps);

// Kills this process when its parent dies. Credentials that change undo it: call
// it after the last change.
absl::Status DieWithParent();

}  // namespace mtmc::worker
