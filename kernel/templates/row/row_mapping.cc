// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_mapping.h"

#include <algorithm>

#include "kernel/templates/row/row_knobs.h"

namespace mtmc::kernel {
namespace {

int64_t LargestDivisor(int64_t value, int64_t most) {
  for (int64_t divisor = std::min(value, most); divisor > 1; --divisor) {
    if (value % divisor == 0) return divisor;
  }
  return 1;
}

}  // namespace

RowMapping FitMapping(const GroupView& view, const EmitTarget& target,
                      const SweepPlan::Stage& stage, const std::vector<std::string>& tuned) {
  const RowSpace& space = stage.space;
  const bool is_gpu = !target.is_cpu();
  RowMapping mapping = RowKnobs().Read(view);
  mapping.block = std::clamp<int64_t>(mapping.block, is_gpu ? 32 : 1, target.max_threads_per_block);
  const int64_t run = mapping.by_row != 0 ? space.row_run : space.inner;
  if (run % mapping.vector != 0) mapping.vector = LargestDivisor(run, mapping.vector);
  // Blocks whose size the sweep changes have no fixed slices or registers.
  const bool is_tuned = std::find(tuned.begin(), tuned.end(), "block") != tuned.end();
  if (mapping.by_row == 0 || is_tuned || mapping.block % mapping.depth != 0) mapping.depth = 1;
  if (is_tuned || !is_gpu) mapping.cache = 0;
  const int64_t columns = mapping.by_row != 0 ? space.columns() : space.columns() / mapping.vector;
  mapping.split = std::clamp<int64_t>(mapping.split, 1, columns);
  if (mapping.cache != 0) {
    const int64_t step = mapping.by_row != 0 ? mapping.depth : mapping.block;
    const int64_t steps = (columns + step - 1) / step;
    if (steps * mapping.vector > kMostCachedElements) mapping.cache = 0;
  }
  return mapping;
}

}  // namespace mtmc::kernel
