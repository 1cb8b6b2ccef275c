// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "mtmc/v1/action.pb.h"
#include "server/search/lineage.h"

namespace mtmc::search {

// Groups do not depend on each other's variants, so that the times of single
// kernels say which program of a job is fastest in which part. The step from
// candidate `parent` to the program with the fastest known variant of every part:
// argument `schedule` holds it. Absent unless the sum of times promises to be
// faster than every program with times, and it was not tried. A promise only: the
// program is verified and measured like any other.
std::optional<v1::Action> FindMix(const Lineage& lineage, int parent);

}  // namespace mtmc::search
