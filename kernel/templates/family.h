// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/schedule/schedule.h"
#include "kernel/templates/knob_table.h"
#include "kernel/view/emit_target.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/emission.h"

namespace mtmc::kernel {

// A kernel template: prints both dialects from one description. Implementations
// are stateless and thread-safe; one file each, registered in `families.cc`.
class Family {
 public:
  virtual ~Family() = default;
  virtual FamilyKind kind() const = 0;
  // Whether Emit can print this group as one unit.
  virtual bool Accepts(const GroupView& view) const = 0;
  virtual const KnobTable& knobs() const = 0;
  // REQUIRES: Accepts(view), and the group's knobs are complete and pass the
  // table's check. A knob `k` listed in `tuned` is printed as the macro GROUP_K
  // instead of its value.
  virtual absl::StatusOr<Emission> Emit(const GroupView& view, const EmitTarget& target,
                                        const std::vector<std::string>& tuned) const = 0;
};

// Family of that kind; never null.
const Family& FamilyOf(FamilyKind kind);

// The group with every knob: the family's defaults under the group's own.
KernelGroup WithAllKnobs(const GroupView& view, const EmitTarget& target);

// INVALID_ARGUMENT, with the group's name and what is allowed, unless the family
// accepts the group and its table the group's knobs and swept values.
absl::Status CheckGroup(const GroupView& view, const EmitTarget& target, const KnobValues& tune);

}  // namespace mtmc::kernel
