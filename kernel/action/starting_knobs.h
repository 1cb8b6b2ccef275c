// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/action/partition.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// Knobs with which its template would time a group first, whatever knobs it has;
// those that are its defaults left out.
Knobs StartingKnobs(const ScheduleContext& context, const KernelGroup& group);

}  // namespace mtmc::kernel
