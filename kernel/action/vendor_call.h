// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernel/action/legal_action.h"
#include "kernel/action/partition.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// What each template that prints calls offers for the groups: the one node that a
// vendor has a call for, at each precision, and groups of our own for what was
// fused to it. The context and the schedule must outlive the result.
std::vector<LegalAction> EnumerateCalls(const ScheduleContext& context, const Schedule& schedule,
                                        bool allow_tf32);

}  // namespace mtmc::kernel
