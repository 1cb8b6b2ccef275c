// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/view/emit_target.h"
#include "kernel/view/sweep_plan.h"
#include "kernel/writer/emission.h"

namespace mtmc::kernel {

// Prints the kernels of a stage. `index` makes names unique in the group.
absl::StatusOr<Emission> EmitStage(const GroupView& view, const EmitTarget& target,
                                   const std::vector<std::string>& tuned,
                                   const SweepPlan::Stage& stage, size_t index);

}  // namespace mtmc::kernel
