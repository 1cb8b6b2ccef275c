// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernel/templates/family.h"
#include "kernel/view/group_kind.h"
#include "kernel/view/sweep_plan.h"

namespace mtmc::kernel {

// What the families of reductions have in common: groups of reductions and maps
// over row spaces, printed by `row_kernel.h`. Knobs are those of RowMapping:
// `by_row`, `block`, `vector`, `depth`, `split`, `cache`.
class RowFamily : public Family {
 public:
  Knobs DefaultKnobs(const GroupView& view, const EmitTarget& target) const override;
  std::vector<KnobMove> Moves(const GroupView& view, const EmitTarget& target) const override;
  std::vector<KnobSweep> Sweeps(const GroupView& view, const EmitTarget& target) const override;
  absl::StatusOr<Emission> Emit(const GroupView& view, const EmitTarget& target,
                                const std::vector<std::string>& tuned) const override;

 protected:
  // Whether rows may be computed by one thread each even where their elements
  // do not lie side by side, as for windows.
  virtual bool IsAlwaysByRow() const { return false; }
};

}  // namespace mtmc::kernel
