// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/mechanism.h"

#include <algorithm>

namespace mtmc::worker {
namespace {

constexpr std::array kRestrictedNeeds = {Mechanism::kNoNewPrivileges, Mechanism::kNoCapabilities,
                                         Mechanism::kSeccomp};

constexpr std::array kConfinedNeeds = {Mechanism::kUserNamespace, Mechanism::kPidNamespace,
                                       Mechanism::kMountNamespace, Mechanism::kNetworkNamespace,
                                       Mechanism::kIpcNamespace};

template <size_t kCount>
bool HasAll(const MechanismSet& mechanisms, const std::array<Mechanism, kCount>& needed) {
  return std::all_of(needed.begin(), needed.end(),
                     [&](Mechanism mechanism) { return mechanisms.contains(mechanism); });
}

}  // namespace

std::string_view NameOf(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::kLimits:
      return "limits";
    case Mechanism::kNoNewPrivileges:
      return "no-new-privileges";
    case Mechanism::kNoCapabilities:
      return "no-capabilities";
    case Mechanism::kSeccomp:
      return "seccomp";
    case Mechanism::kLandlock:
      return "landlock";
    case Mechanism::kUserNamespace:
      return "namespace.user";
    case Mechanism::kPidNamespace:
      return "namespace.pid";
    case Mechanism::kMountNamespace:
      return "namespace.mount";
    case Mechanism::kNetworkNamespace:
      return "namespace.network";
    case Mechanism::kIpcNamespace:
      return "namespace.ipc";
  }
  return "";
}

std::optional<Mechanism> FindMechanism(std::string_view name) {
  for (const Mechanism mechanism : kAllMechanisms) {
    if (NameOf(mechanism) == name) return mechanism;
  }
  return std::nullopt;
}

std::string_view NameOf(IsolationLevel level) {
  switch (level) {
    case IsolationLevel::kProcess:
      return "process";
    case IsolationLevel::kRestricted:
      return "restricted";
    case IsolationLevel::kConfined:
      return "confined";
  }
  return "";
}

std::optional<IsolationLevel> FindIsolationLevel(std::string_view name) {
  for (const auto level :
       {IsolationLevel::kProcess, IsolationLevel::kRestricted, IsolationLevel::kConfined}) {
    if (NameOf(level) == name) return level;
  }
  return std::nullopt;
}

IsolationLevel LevelOf(const MechanismSet& mechanisms) {
  if (!HasAll(mechanisms, kRestrictedNeeds)) return IsolationLevel::kProcess;
  return HasAll(mechanisms, kConfinedNeeds) ? IsolationLevel::kConfined
                                            : IsolationLevel::kRestricted;
}

MechanismSet MechanismsOf(IsolationLevel level) {
  if (level == IsolationLevel::kProcess) return {};
  MechanismSet mechanisms(kAllMechanisms.begin(), kAllMechanisms.end());
  if (level == IsolationLevel::kRestricted) {
    for (const Mechanism mechanism : kConfinedNeeds) mechanisms.erase(mechanism);
  }
  return mechanisms;
}

}  // namespace mtmc::worker
