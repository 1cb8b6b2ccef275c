// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/view/group_view.h"

namespace mtmc::kernel {

// Rough work of one group, for comparing partitions and templates.
struct GroupCost {
  // Arithmetic, with maps counted as often as they are evaluated.
  double operations = 0;
  // Tensors read and written, each once.
  double bytes = 0;
};

// That of the group's maps, reductions and scans, and all of its traffic. Sums of
// products are for their template to add.
GroupCost CostOfSweeps(const GroupView& view);

}  // namespace mtmc::kernel
