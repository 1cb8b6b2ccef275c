// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row/row_template.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/templates/row/row_kernel.h"
#include "kernel/templates/row/row_knobs.h"
#include "kernel/templates/row/row_start.h"
#include "kernel/templates/starting_steps.h"
#include "kernel/view/group_kind.h"
#include "kernel/view/sweep_plan.h"

namespace mtmc::kernel {

namespace {

// Windows overlap, so that their elements are nobody's own: one level of them is all.
bool HoldsWindowsAlone(const SweepPlan& plan) {
  if (plan.stages.size() != 1 || plan.stages[0].levels.size() != 1) return false;
  const SweepPlan::Stage& stage = plan.stages[0];
  return stage.full_outputs.empty() &&
         std::all_of(stage.levels[0].begin(), stage.levels[0].end(),
                     [](const Loop* loop) { return IsWindow(*loop); });
}

bool Accepts(const GroupView& view, const EmitTarget& /*target*/) {
  const SweepPlan* plan = FindSweepPlan(view);
  return plan != nullptr && (KindOf(view) != GroupKind::kWindow || HoldsWindowsAlone(*plan));
}

// Wide accesses; on a CPU rows in pieces where there are too few of them, which also keeps the
// error of a long sum from growing with its length.
Knobs StartingKnobs(const GroupView& view, const EmitTarget& target) {
  StartingSteps steps(view, target, RowKnobs());
  steps.Widen();
  if (target.is_cpu()) {
    steps.TakeFirst("split");
  } else {
    const int64_t lanes = steps.knobs().find("vector")->second;
    steps.TakeIfLegal(RowKnobs().Write(StartingMapping(view, target, lanes)));
  }
  return steps.knobs();
}

absl::StatusOr<Emission> Print(const GroupView& view, const EmitTarget& target,
                               const std::vector<std::string>& tuned) {
  std::optional<SweepPlan> split;
  const SweepPlan* plan = FindSweepPlan(view);
  if (RowKnobs().Read(view).split > 1) {
    split = MakeSplitPlan(view);
    plan = split ? &*split : nullptr;
  }
  if (plan == nullptr) {
    return absl::InvalidArgumentError("group " + view.group->name + " has no row space");
  }
  Emission emission;
  for (const std::string& value : plan->kept) {
    if (std::find(view.outputs.begin(), view.outputs.end(), value) != view.outputs.end()) continue;
    emission.buffers.push_back({.role = Tensor::Role::kBuffer,
                                .name = value,
                                .type = view.nest->types.find(value)->second});
  }
  for (size_t i = 0; i < plan->stages.size(); ++i) {
    MTMC_ASSIGN_OR_RETURN(Emission stage, EmitStage(view, target, tuned, plan->stages[i], i));
    std::move(stage.buffers.begin(), stage.buffers.end(), std::back_inserter(emission.buffers));
    std::move(stage.steps.begin(), stage.steps.end(), std::back_inserter(emission.steps));
  }
  return emission;
}

}  // namespace

const KernelTemplate kRowTemplate = {
    .name = "row",
    .accepts = Accepts,
    .knobs = []() -> const KnobTable& { return RowKnobs(); },
    .starting_knobs = StartingKnobs,
    .cost = CostOfSweeps,
    .print = Print,
};

}  // namespace mtmc::kernel
