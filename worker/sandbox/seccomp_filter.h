// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/status.h"
#include "worker/sandbox/rights.h"

namespace mtmc::worker {

// What the other mechanisms already see to; a filter without them refuses more.
struct FilterOptions {
  PartyKind party = PartyKind::kBuilder;
  // Signals reach its own processes only (pid namespace, or Landlock 6).
  bool has_own_signals = false;
  // Its file system holds no socket of others (mount and network namespaces).
  bool has_own_sockets = false;
};

// Puts the allow-list of a party on this thread and all that it starts. Calls on
// no list are answered with ENOSYS, as an older kernel would, so that the C
// library uses its fallbacks; the dangerous ones with EPERM. REQUIRES:
// no_new_privs or CAP_SYS_ADMIN.
absl::Status LoadPartyFilter(const FilterOptions& options);

// Refuses with EPERM, in all threads, `calls` (numbers of this architecture),
// and clone() unless it makes a thread if `refuses_processes`; kill() and its
// kin reach this process only.
absl::Status LoadSeal(std::span<const int> calls, bool refuses_processes);

// The trial of the kernel: a filter without rules.
absl::Status LoadEmptyFilter();

}  // namespace mtmc::worker
