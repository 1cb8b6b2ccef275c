// SPDX-License-Identifier: Apache-2.0
#include "kernel/emit/contraction_family.h"
#include "kernel/emit/family.h"
#include "kernel/emit/library_family.h"
#include "kernel/emit/pointwise_family.h"

#if __has_include("kernel/emit/reduction_family.h")
#include "kernel/emit/normalization_family.h"
#include "kernel/emit/reduction_family.h"
#include "kernel/emit/scan_family.h"
#include "kernel/emit/window_family.h"
#endif

namespace mtmc::kernel {

const Family& FamilyOf(FamilyKind kind) {
  switch (kind) {
    case FamilyKind::kPointwise:
      return PointwiseFamily();
#if __has_include("kernel/emit/reduction_family.h")
    case FamilyKind::kReduction:
      return ReductionFamily();
#endif
#if __has_include("kernel/emit/reduction_family.h")
    case FamilyKind::kNormalization:
      return NormalizationFamily();
#endif
    case FamilyKind::kContraction:
      return ContractionFamily();
#if __has_include("kernel/emit/reduction_family.h")
    case FamilyKind::kWindow:
      return WindowFamily();
#endif
#if __has_include("kernel/emit/reduction_family.h")
    case FamilyKind::kScan:
      return ScanFamily();
#endif
    default:
      return LibraryFamily();
  }
  return LibraryFamily();
}

}  // namespace mtmc::kernel
