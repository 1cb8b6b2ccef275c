// SPDX-License-Identifier: Apache-2.0
#include "absl/status/status.h"
#include "common/base/annotate.h"
#include "kernel/graph/text.h"
#include "kernel/templates/contraction_family.h"
#include "kernel/templates/family.h"
#include "kernel/templates/library_family.h"
#include "kernel/templates/normalization_family.h"
#include "kernel/templates/pointwise_family.h"
#include "kernel/templates/reduction_family.h"
#include "kernel/templates/scan_family.h"
#include "kernel/templates/window_family.h"

namespace mtmc::kernel {

const Family& FamilyOf(FamilyKind kind) {
  switch (kind) {
    case FamilyKind::kPointwise:
      return PointwiseFamily();
    case FamilyKind::kReduction:
      return ReductionFamily();
    case FamilyKind::kNormalization:
      return NormalizationFamily();
    case FamilyKind::kContraction:
      return ContractionFamily();
    case FamilyKind::kWindow:
      return WindowFamily();
    case FamilyKind::kScan:
      return ScanFamily();
    case FamilyKind::kLibrary:
      return LibraryFamily();
  }
  return LibraryFamily();
}

KernelGroup WithAllKnobs(const GroupView& view, const EmitTarget& target) {
  KernelGroup complete = *view.group;
  for (const auto& [knob, value] : FamilyOf(complete.family).knobs().Defaults(view, target)) {
    complete.knobs.emplace(knob, value);
  }
  return complete;
}

absl::Status CheckGroup(const GroupView& view, const EmitTarget& target, const KnobValues& tune) {
  const KernelGroup& group = *view.group;
  const Family& family = FamilyOf(group.family);
  if (!family.Accepts(view)) {
    return absl::InvalidArgumentError(
        Concat("group \"", group.name, "\" does not fit the family ", ToText(group.family)));
  }
  if (group.family != FamilyKind::kLibrary && group.precision != LibraryCall::Precision::kDefault) {
    return absl::InvalidArgumentError(
        Concat("group \"", group.name, "\" has a precision, which only library calls have"));
  }
  return base::Annotate(family.knobs().Check(view, target, tune),
                        Concat("in group \"", group.name, "\""));
}

}  // namespace mtmc::kernel
