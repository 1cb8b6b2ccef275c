// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/reduction_family.h"

#include <algorithm>
#include <optional>

#include "kernel/templates/row_family.h"

namespace mtmc::kernel {
namespace {

class ReductionFamilyImplementation final : public RowFamily {
 public:
  FamilyKind kind() const override { return FamilyKind::kReduction; }

  bool Accepts(const GroupView& view) const override {
    const std::optional<SweepPlan> plan = MakeSweepPlan(view);
    if (!plan || std::any_of(view.loops.begin(), view.loops.end(),
                             [](const Loop* loop) { return IsWindow(*loop); })) {
      return false;
    }
    return std::all_of(plan->stages.begin(), plan->stages.end(), [](const auto& stage) {
      return stage.full_outputs.empty() && stage.map_outputs.empty();
    });
  }
};

}  // namespace

const Family& ReductionFamily() {
  static const auto* const family = new ReductionFamilyImplementation();
  return *family;
}

}  // namespace mtmc::kernel
