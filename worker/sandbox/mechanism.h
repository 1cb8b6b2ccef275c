// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace mtmc::worker {

// One thing that keeps a child process from the host, in the order in which
// reports name them. What each one does, and how it is checked, is the table in
// docs/security.md.
enum class Mechanism {
  kLimits,            // core, files, file size, memory, processes
  kNoNewPrivileges,   // set-uid programs give nothing
  kNoCapabilities,    // none, in no set; not even as root
  kSeccomp,           // system calls by allow-list
  kLandlock,          // files by allow-list, no TCP, no signals out
  kUserNamespace,     // an id of its own, without rights outside
  kPidNamespace,      // sees and signals its own processes alone
  kMountNamespace,    // a new root, read-only but for its own folders
  kNetworkNamespace,  // no interface, not even a loopback
  kIpcNamespace,      // no shared memory or queues of others
};

inline constexpr std::array kAllMechanisms = {
    Mechanism::kLimits,       Mechanism::kNoNewPrivileges, Mechanism::kNoCapabilities,
    Mechanism::kSeccomp,      Mechanism::kLandlock,        Mechanism::kUserNamespace,
    Mechanism::kPidNamespace, Mechanism::kMountNamespace,  Mechanism::kNetworkNamespace,
    Mechanism::kIpcNamespace};

using MechanismSet = std::set<Mechanism>;

// `namespace.user`, `seccomp`: stable, for reports and the launcher's input.
std::string_view NameOf(Mechanism mechanism);
std::optional<Mechanism> FindMechanism(std::string_view name);

// mtmc.v1.Isolation without protobuf, and ordered like it: each level holds
// everything of the one before.
enum class IsolationLevel { kProcess = 1, kRestricted = 2, kConfined = 3 };

// `process`, `restricted`, `confined`.
std::string_view NameOf(IsolationLevel level);
std::optional<IsolationLevel> FindIsolationLevel(std::string_view name);

// The highest level that `mechanisms` add up to. Landlock is used at kRestricted
// and above but not demanded, because many kernels lack it.
IsolationLevel LevelOf(const MechanismSet& mechanisms);

// All that a level may use: those of the highest level are all of them.
MechanismSet MechanismsOf(IsolationLevel level);

}  // namespace mtmc::worker
