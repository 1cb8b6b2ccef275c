// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {

// A run of consecutive elements that one load brought into a local array; lane
// `v` of the array is the element at these indices for lane `v`.
struct LaneArray {
  std::string tensor;
  std::vector<ScalarPtr> indices;
  std::string array;
};

// Prints the loads of what `roots` read, before a loop over `lane` (an axis
// with `lanes` values): elements that do not depend on the lane as one local,
// runs that do as vectors. What is left is loaded lane by lane, later. Call
// BindLanes at the start of the lane loop.
std::vector<LaneArray> PrintLaneLoads(KernelWriter& writer, const GroupView& view,
                                      const std::vector<ScalarPtr>& roots, const ScalarPtr& lane,
                                      int lanes);

// Makes the arrays' lanes known in the present scope, whose lane variable has
// the name `lane`.
void BindLanes(KernelWriter& writer, const std::vector<LaneArray>& arrays, std::string_view lane);

}  // namespace mtmc::kernel
