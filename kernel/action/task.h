// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernel/action/partition.h"

namespace mtmc::kernel {

// What these nodes compute together, as text: operators, constants, shapes,
// types and who reads whom, without a name of the graph. Groups with equal texts
// are one task: what is a good kernel for one is one for the other. Values from
// outside count by their type and the movements they are read through.
// REQUIRES: the nodes are of the graph, in definition order.
std::string TaskOf(const ScheduleContext& context, const std::vector<std::string>& nodes);

}  // namespace mtmc::kernel
