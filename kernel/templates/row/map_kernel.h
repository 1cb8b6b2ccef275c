// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernel/view/emit_target.h"
#include "kernel/view/sweep_plan.h"
#include "kernel/writer/emission.h"

namespace mtmc::kernel {

// Prints a kernel named `name` that computes `value`, a map output of a stage
// without reductions: a thread per element.
absl::StatusOr<EmittedStep> EmitMap(const GroupView& view, const EmitTarget& target,
                                    const SweepPlan::Stage& stage, const std::string& value,
                                    const std::string& name);

}  // namespace mtmc::kernel
