// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mtmc/v1/evaluation.pb.h"

namespace mtmc::worker {

// Hidden seeds, then with `has_distributions` every distribution with a seed of its own,
// then the public workload (number 0), on which timing goes on.
std::vector<v1::Workload> MakeWorkloads(int hidden_seeds, bool has_distributions);

// Whether its inputs are as `get_inputs` draws them.
bool IsUnchanged(const v1::Workload& workload);

// Such as `seed 3, times 3`.
std::string ToText(const v1::Workload& workload);

}  // namespace mtmc::worker
