// SPDX-License-Identifier: Apache-2.0
#include "worker/sandbox/isolation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/run_process.h"
#include "common/base/status_macros.h"
#include "worker/sandbox/host_trial.h"

namespace mtmc::worker {
namespace {

constexpr absl::Duration kProbeTimeout = absl::Seconds(10);

std::string Reason(const std::string& text) { return text.empty() ? "not tried" : text; }

}  // namespace

absl::StatusOr<HostSupport> ProbeHost(const std::string& launcher) {
  MTMC_ASSIGN_OR_RETURN(const auto run, base::RunProcess({.argv = {launcher, "--probe"}},
                                                         {.timeout = kProbeTimeout}));
  if (!run.exit.is_success()) {
    return absl::UnavailableError(
        absl::StrCat(launcher, " ", run.exit.ToString(), ": ", run.error));
  }
  return ParseHostSupport(run.output);
}

std::vector<std::string> Isolation::InForce() const {
  std::vector<std::string> names = {"process", "process-group-deadline", "environment-allow-list",
                                    "descriptors"};
  for (const Mechanism mechanism : mechanisms) names.emplace_back(NameOf(mechanism));
  return names;
}

Isolation DecideIsolation(const std::string& launcher, const absl::StatusOr<HostSupport>& support,
                          IsolationLevel limit) {
  Isolation isolation{.launcher = launcher};
  const MechanismSet permitted = MechanismsOf(limit);
  for (const Mechanism mechanism : kAllMechanisms) {
    const std::string name(NameOf(mechanism));
    if (!permitted.contains(mechanism)) {
      isolation.missing[name] =
          absl::StrCat("switched off by --isolation=", std::string(NameOf(limit)));
    } else if (!support.ok()) {
      isolation.missing[name] = Reason(std::string(support.status().message()));
    } else if (const auto why = support->missing.find(mechanism); why != support->missing.end()) {
      isolation.missing[name] = Reason(why->second);
    } else {
      isolation.mechanisms.insert(mechanism);
    }
  }
  return isolation;
}

Isolation Degrade(const Isolation& isolation, IsolationLevel limit, const std::string& reason) {
  Isolation lower = isolation;
  const MechanismSet permitted = MechanismsOf(limit);
  for (const Mechanism mechanism : isolation.mechanisms) {
    if (permitted.contains(mechanism)) continue;
    lower.mechanisms.erase(mechanism);
    lower.missing[std::string(NameOf(mechanism))] = reason;
  }
  return lower;
}

}  // namespace mtmc::worker
