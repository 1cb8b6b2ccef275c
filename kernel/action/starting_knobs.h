// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/action/partition.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// Knobs with which a group is worth timing first: of the steps that its family
// offers those that pay on nearly every shape. Blocks of sums in registers or
// shared memory for a product, wide accesses, and rows in pieces where there are
// too few of them. Those pieces and lanes also keep the error of a long sum from
// growing with its length. A knob that is missing has the family's default.
Knobs StartingKnobs(const ScheduleContext& context, const KernelGroup& group);

}  // namespace mtmc::kernel
