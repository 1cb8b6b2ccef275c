// SPDX-License-Identifier: Apache-2.0
#include "kernel/view/group_kind.h"

#include "kernel/algebra/index_algebra.h"

namespace mtmc::kernel {

bool IsWindow(const Loop& loop) {
  if (loop.form != Loop::Form::kReduce) return false;
  if (loop.combiner == Combiner::kWelford || loop.combiner == Combiner::kOnlineSoftmax) {
    return false;
  }
  const auto uses = [&](const ScalarPtr& index, int first, int last) {
    for (int axis = first; axis < last; ++axis) {
      if (UsesAxis(index, axis)) return true;
    }
    return false;
  };
  const int outputs = loop.output_axes();
  const int axes = static_cast<int>(loop.extents.size());
  for (const Scalar* read : Reads(loop.body)) {
    for (const ScalarPtr& index : read->operands) {
      if (uses(index, 0, outputs) && uses(index, outputs, axes)) return true;
    }
  }
  return false;
}

}  // namespace mtmc::kernel
