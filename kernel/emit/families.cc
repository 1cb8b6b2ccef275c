// SPDX-License-Identifier: Apache-2.0
#include "kernel/emit/contraction_family.h"
#include "kernel/emit/family.h"
#include "kernel/emit/library_family.h"
#include "kernel/emit/normalization_family.h"
#include "kernel/emit/pointwise_family.h"
#include "kernel/emit/reduction_family.h"
#include "kernel/emit/scan_family.h"
#include "kernel/emit/window_family.h"

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
