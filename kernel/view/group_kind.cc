// SPDX-License-Identifier: Apache-2.0
#include "kernel/view/group_kind.h"

#include <algorithm>

#include "kernel/algebra/index_algebra.h"
#include "kernel/view/sweep_plan.h"

namespace mtmc::kernel {
namespace {

// Whether every output has an element per row, so that one sweep of each level is all.
bool HasRowOutputsAlone(const GroupView& view) {
  const SweepPlan* plan = FindSweepPlan(view);
  return plan != nullptr &&
         std::all_of(plan->stages.begin(), plan->stages.end(), [](const SweepPlan::Stage& stage) {
           return stage.full_outputs.empty() && stage.map_outputs.empty();
         });
}

}  // namespace

GroupKind KindOf(const GroupView& view) {
  const auto has = [&view](Loop::Form form) {
    return std::any_of(view.loops.begin(), view.loops.end(),
                       [form](const Loop* loop) { return loop->form == form; });
  };
  if (has(Loop::Form::kOpaque)) return GroupKind::kOpaque;
  if (has(Loop::Form::kContract)) return GroupKind::kContraction;
  if (has(Loop::Form::kScan)) return GroupKind::kScan;
  if (!has(Loop::Form::kReduce)) return GroupKind::kPointwise;
  const bool has_window = std::any_of(view.loops.begin(), view.loops.end(),
                                      [](const Loop* loop) { return IsWindow(*loop); });
  if (has_window) return GroupKind::kWindow;
  return HasRowOutputsAlone(view) ? GroupKind::kReduction : GroupKind::kNormalization;
}

std::string_view ToText(GroupKind kind) {
  switch (kind) {
    case GroupKind::kPointwise:
      return "pointwise";
    case GroupKind::kReduction:
      return "reduction";
    case GroupKind::kNormalization:
      return "normalization";
    case GroupKind::kWindow:
      return "window";
    case GroupKind::kContraction:
      return "contraction";
    case GroupKind::kScan:
      return "scan";
    case GroupKind::kOpaque:
      return "opaque";
  }
  return "opaque";
}

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
