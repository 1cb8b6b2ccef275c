// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernel/action/action_space.h"
#include "kernel/action/partition.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// Actions on every equal of a region at once: a network repeats its blocks, and
// what is to be done with one of them is to be done with all. Each stands for
// those of `single` that are the same step on groups of equal tasks (task.h), and
// does all of them; a group belongs to one of them at most. Argument `equals`
// counts them. Sweeps are left out, for their variants multiply.
// The context and the schedule must outlive the result.
std::vector<LegalAction> EnumerateClassActions(const ScheduleContext& context,
                                               const Schedule& schedule,
                                               const std::vector<LegalAction>& single);

}  // namespace mtmc::kernel
