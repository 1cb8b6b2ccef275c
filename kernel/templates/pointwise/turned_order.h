// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/view/group_view.h"

namespace mtmc::kernel {

// The order in which what a group reads most lies in memory, where that is not how its outputs
// lie, as in a transpose. Threads side by side that follow it read whole transactions, and write
// them if each has a run of the last axis.
struct TurnedOrder {
  // Of the outputs, where neighbouring axes along which every input moves evenly are one.
  std::vector<int64_t> extents;
  // Axes of `extents`, outermost first. The last one is another than theirs.
  std::vector<int> order;
  // Neighbours along that one that go together, a divisor of its extent: between them and the rest
  // of it stands the last axis of `extents`, so that what a block writes lies close together, too.
  int64_t tile = 1;

  // Whether there is one: outputs differ in shape, or inputs lie like them or in no order.
  bool is_empty() const { return order.empty(); }
};

TurnedOrder FindTurnedOrder(const GroupView& view);

}  // namespace mtmc::kernel
