// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/row_family.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/templates/row_kernel.h"
#include "kernel/templates/row_knobs.h"

namespace mtmc::kernel {

const KnobTable& RowFamily::knobs() const { return RowKnobs(); }

absl::StatusOr<Emission> RowFamily::Emit(const GroupView& view, const EmitTarget& target,
                                         const std::vector<std::string>& tuned) const {
  const bool is_split = RowKnobs().Read(view).split > 1;
  const std::optional<SweepPlan> plan = is_split ? MakeSplitPlan(view) : MakeSweepPlan(view);
  if (!plan) {
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

}  // namespace mtmc::kernel
