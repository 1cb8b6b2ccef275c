// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/sandbox/rights.h"

namespace mtmc::worker {

// What a confined process sees as its user and group.
inline constexpr unsigned kInnerId = 1000;

// What a daemon that runs as root makes its children; `nobody` on every Linux.
inline constexpr unsigned kOuterId = 65534;

// Whether namespaces can be made without a user namespace around them: then the
// mounts belong to the host's root, out of the child's reach for good.
bool IsPrivileged();

// A new user namespace in which the present user is kInnerId, and this process
// has all capabilities. REQUIRES: one thread.
absl::Status EnterUserNamespace();

// As root: hands `writable` to the user `owner`, with all they hold, which may be another
// user's since a start at another level.
absl::Status GiveFolders(const std::vector<std::string>& writable, unsigned owner);

// As root: becomes kOuterId, without other groups than those that may open
// `devices`.
absl::Status BecomeNobody(const std::vector<std::string>& devices);

// Empties every set of capabilities of this process and of what it executes.
absl::Status DropCapabilities();

absl::Status SetNoNewPrivileges();

// Of the process; `counts_processes` where others of the user do not count.
absl::Status SetLimits(const Rights::Limits& limits, bool counts_processes);

}  // namespace mtmc::worker
