// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/view/group_view.h"

namespace mtmc::kernel {

// Rough work of one group, for comparing partitions.
struct GroupCost {
  // Arithmetic, with maps counted as often as they are evaluated.
  double operations = 0;
  // Tensors read and written, each once.
  double bytes = 0;
};

GroupCost CostOfGroup(const GroupView& view);

}  // namespace mtmc::kernel
