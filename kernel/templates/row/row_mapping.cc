// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_mapping.h"

#include <algorithm>
#include <bit>

#include "kernel/templates/row/row_knobs.h"
#include "kernel/view/group_kind.h"

namespace mtmc::kernel {
namespace {

int64_t LargestDivisor(int64_t value, int64_t most) {
  for (int64_t divisor = std::min(value, most); divisor > 1; --divisor) {
    if (value % divisor == 0) return divisor;
  }
  return 1;
}

}  // namespace

const SweepPlan::Stage& MainStage(const SweepPlan& plan) {
  const auto elements = [](const SweepPlan::Stage& stage) {
    return stage.levels.empty() ? 0 : stage.space.rows * stage.space.columns();
  };
  return *std::max_element(plan.stages.begin(), plan.stages.end(),
                           [&](const auto& a, const auto& b) { return elements(a) < elements(b); });
}

int64_t PowerOfTwoUpTo(int64_t value, int64_t least, int64_t most) {
  const uint64_t power = std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(value, 1)));
  return std::clamp(static_cast<int64_t>(power), least, most);
}

int64_t MostCachedElements(int64_t block) {
  constexpr int64_t kRegisters = int64_t{1} << 16;
  return std::min(kMostCachedElements, kRegisters * 5 / 8 / std::max<int64_t>(block, 1));
}

bool HasWindow(const GroupView& view) {
  return std::any_of(view.loops.begin(), view.loops.end(),
                     [](const Loop* loop) { return IsWindow(*loop); });
}

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
    if (steps * mapping.vector > MostCachedElements(mapping.block)) mapping.cache = 0;
  }
  return mapping;
}

}  // namespace mtmc::kernel
