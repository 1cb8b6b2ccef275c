// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

namespace mtmc::worker {

// Where a cluster runs this process, for people who look for a worker there, as keys such as
// `slurm.job` and `kubernetes.pod`: from the variables of Slurm, and from those that our
// chart sets. Empty on a plain host. `variable` is getenv().
std::map<std::string, std::string> PlaceLabels(
    const std::function<const char*(const char* name)>& variable);

}  // namespace mtmc::worker
