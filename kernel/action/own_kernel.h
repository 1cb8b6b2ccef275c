// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernel/action/action_space.h"
#include "kernel/action/partition.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// The way back from a vendor's call, for each that a template could print: a
// kernel of our own with fitting knobs, alone, and with the element-wise groups
// around it, which a call cannot take in; and all calls at once. The two belong in one step: the
// kernel alone is often slower than the call, and the search would not go on from it.
// The context and the schedule must outlive the result.
std::vector<LegalAction> EnumerateOwnKernels(const ScheduleContext& context,
                                             const Schedule& schedule);

}  // namespace mtmc::kernel
