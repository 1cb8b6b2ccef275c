// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/schedule/schedule.h"
#include "kernel/templates/knob_table.h"
#include "kernel/view/emit_target.h"
#include "kernel/view/group_cost.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/emission.h"

namespace mtmc::kernel {

// A call that a template could print for a group.
struct CallOffer {
  // Such as `as aten::matmul with tf32`; what the action says after the group's name.
  std::string text;
  LibraryCall::Precision precision = LibraryCall::Precision::kDefault;
  // Arguments of the action.
  std::map<std::string, std::string> arguments;
};

// How a group becomes text, in both dialects: the row of the registry
// (`template_registry.h`) by which a template is known. What a group computes
// follows from its loops (`group_kind.h`); which of the templates that accept it
// prints it is a choice in the schedule. A static table of functions without
// state; thread-safe.
struct KernelTemplate {
  // The word of a schedule.
  std::string_view name;
  // Prints the call that the user wrote instead of kernels: of one node alone, never
  // joined with others, and with a precision. The other templates are our own.
  bool is_call = false;
  // Whether a union of groups may keep the knobs of the one that gives it its name.
  // Not where the right ones depend on all that is kept in registers.
  bool keeps_knobs = false;
  // Precision tier of a template of our own that has the vendor's library compute products on
  // tensor cores, such as `tf32x3`; empty for what computes in the types of the graph. Such a
  // template is chosen by an action or a start alone, and only where calls are allowed.
  std::string_view tier;

  // Whether `print` can print this group as one unit.
  bool (*accepts)(const GroupView& view, const EmitTarget& target);
  const KnobTable& (*knobs)();
  // Knobs worth timing first, complete. The group's own are complete, its defaults.
  Knobs (*starting_knobs)(const GroupView& view, const EmitTarget& target);
  // REQUIRES: accepts(view).
  GroupCost (*cost)(const GroupView& view);
  // REQUIRES: accepts(view), and the group's knobs are complete and pass the
  // table's check. A knob `k` listed in `tuned` is printed as the macro GROUP_K
  // instead of its value.
  absl::StatusOr<Emission> (*print)(const GroupView& view, const EmitTarget& target,
                                    const std::vector<std::string>& tuned);
  // For calls: one offer per precision. REQUIRES: accepts(view).
  std::vector<CallOffer> (*offers)(const GroupView& view, const EmitTarget& target,
                                   bool allow_tf32) = nullptr;
  // For a tier: whether it may be faster than the vendor's call on this device.
  // REQUIRES: accepts(view).
  bool (*is_promising)(const GroupView& view, const EmitTarget& target) = nullptr;
  // For a tier: knobs with which it rounds less and takes longer, complete; empty where there are
  // none. REQUIRES: accepts(view).
  Knobs (*exact_knobs)(const GroupView& view, const EmitTarget& target) = nullptr;
};

}  // namespace mtmc::kernel
