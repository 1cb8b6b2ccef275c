// SPDX-License-Identifier: Apache-2.0
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

}  // namespace mtmc::kernel
