// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernel/action/legal_action.h"
#include "kernel/action/partition.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// What each template of our own offers for the groups that another one prints: the
// group with fitting knobs; in place of a call also with the element-wise groups
// around it, which a call cannot take in; and all calls at once. The two belong in
// one step: the kernel alone is often slower than the call, and the search would
// not go on from it. Products that may be faster on tensor cores are offered in the
// tier of the template that makes them so, one by one and all together.
// The context and the schedule must outlive the result.
std::vector<LegalAction> EnumerateOwnKernels(const ScheduleContext& context,
                                             const Schedule& schedule);

}  // namespace mtmc::kernel
