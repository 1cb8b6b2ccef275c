// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace mtmc::worker {

// Tables of system calls, as numbers of this architecture. What a table's name
// does not explain is in the comment beside the entry.

// Files that the mount namespace and Landlock let through, memory, threads,
// time: nothing here reaches beyond the process's own rights.
std::span<const int> OrdinaryCalls();

// Start and await processes. All parties: PoCL links with `ld`.
std::span<const int> ProcessCalls();

// On local sockets that exist; socket() and connect() are not among them.
std::span<const int> LocalSocketCalls();

// Refused by name to every party, so that a test can tell a refusal from a
// kernel that lacks the call.
std::span<const int> DangerousCalls();

// What a sealed runner gives up on any device.
std::span<const int> SealedCalls();

// What it gives up besides where nothing is compiled at launch.
std::span<const int> SealedProcessAndFileCalls();

}  // namespace mtmc::worker
