// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/window_family.h"

#include <algorithm>
#include <optional>

#include "kernel/templates/row_family.h"

namespace mtmc::kernel {
namespace {

class WindowFamilyImplementation final : public RowFamily {
 public:
  FamilyKind kind() const override { return FamilyKind::kWindow; }

  bool Accepts(const GroupView& view) const override {
    const std::optional<SweepPlan> plan = MakeSweepPlan(view);
    if (!plan || plan->stages.size() != 1) return false;
    const SweepPlan::Stage& stage = plan->stages[0];
    const bool are_windows = std::all_of(stage.levels[0].begin(), stage.levels[0].end(),
                                         [](const Loop* loop) { return IsWindow(*loop); });
    return are_windows && stage.levels.size() == 1 && stage.full_outputs.empty();
  }
};

}  // namespace

const Family& WindowFamily() {
  static const auto* const family = new WindowFamilyImplementation();
  return *family;
}

}  // namespace mtmc::kernel
