// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/sandbox/mechanism.h"

namespace mtmc::worker {

// What this host allows, each mechanism tried once for real. A value.
struct HostSupport {
  // Why a mechanism cannot be had; those not named work.
  std::map<Mechanism, std::string> missing;
  // 0 without Landlock.
  int landlock_version = 0;
};

// Asks `launcher` (the program mtmc-sandbox) to try every mechanism in processes
// of its own. Blocks some 10 ms.
absl::StatusOr<HostSupport> ProbeHost(const std::string& launcher);

// How the children of a worker are kept apart; decided once. A value.
struct Isolation {
  // Path of mtmc-sandbox.
  std::string launcher;
  // In force; empty: children are started without the launcher.
  MechanismSet mechanisms;
  // Why each of the others is not, by name.
  std::map<std::string, std::string> missing;

  IsolationLevel level() const { return LevelOf(mechanisms); }

  bool has_own_processes() const { return mechanisms.contains(Mechanism::kPidNamespace); }

  // What is in force by name, with what every child has at any level.
  std::vector<std::string> InForce() const;
};

// The most that the host allows and `limit` permits. Where nothing can be tried
// (the launcher is not there), the reason of every mechanism is that.
Isolation DecideIsolation(const std::string& launcher, const absl::StatusOr<HostSupport>& support,
                          IsolationLevel limit);

// `isolation` at a lower level, because `reason`.
Isolation Degrade(const Isolation& isolation, IsolationLevel limit, const std::string& reason);

}  // namespace mtmc::worker
