// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/schedule/schedule.h"
#include "kernel/view/emit_target.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/emission.h"

namespace mtmc::kernel {

// A change of knobs that an action of this family stands for.
struct KnobMove {
  // `tile`, `vectorize`, `reorder` or `split`.
  std::string action;
  // Short, such as `to 128x64 blocks with 8x4 micro-tiles`.
  std::string text;
  Knobs knobs;
};

// One value range of a knob that `tune` may sweep.
struct KnobSweep {
  std::string knob;
  std::vector<int64_t> values;
};

// A kernel template: prints both dialects from one description. Implementations
// are stateless and thread-safe; one file each, registered in `families.cc`.
class Family {
 public:
  virtual ~Family() = default;
  virtual FamilyKind kind() const = 0;
  // Whether Emit can print this group as one unit.
  virtual bool Accepts(const GroupView& view) const = 0;
  // A complete set of knobs that is legal on the device: naive, not best.
  virtual Knobs DefaultKnobs(const GroupView& view, const EmitTarget& target) const = 0;
  // Legal single steps from the group's present knobs, best bets first.
  virtual std::vector<KnobMove> Moves(const GroupView& view, const EmitTarget& target) const = 0;
  // Knobs worth sweeping, present value first. At most 32 combinations.
  virtual std::vector<KnobSweep> Sweeps(const GroupView& view, const EmitTarget& target) const = 0;
  // REQUIRES: Accepts(view), and the group's knobs are complete: DefaultKnobs for the target
  // overlaid with the schedule's. A knob `k` listed in `tuned` is printed as the macro GROUP_K
  // instead of its value.
  virtual absl::StatusOr<Emission> Emit(const GroupView& view, const EmitTarget& target,
                                        const std::vector<std::string>& tuned) const = 0;
};

// Family of that kind; never null.
const Family& FamilyOf(FamilyKind kind);

}  // namespace mtmc::kernel
