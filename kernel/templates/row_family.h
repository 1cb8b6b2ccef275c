// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernel/templates/family.h"
#include "kernel/view/group_kind.h"
#include "kernel/view/sweep_plan.h"

namespace mtmc::kernel {

// What the families of reductions have in common: groups of reductions and maps
// over row spaces, printed by `row_kernel.h`. Its knobs are those of
// `row_knobs.h`.
class RowFamily : public Family {
 public:
  const KnobTable& knobs() const override;
  absl::StatusOr<Emission> Emit(const GroupView& view, const EmitTarget& target,
                                const std::vector<std::string>& tuned) const override;
};

}  // namespace mtmc::kernel
