// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/normalization_family.h"

#include <algorithm>
#include <optional>

#include "kernel/templates/row_family.h"

namespace mtmc::kernel {
namespace {

class NormalizationFamilyImplementation final : public RowFamily {
 public:
  FamilyKind kind() const override { return FamilyKind::kNormalization; }

  bool Accepts(const GroupView& view) const override {
    return MakeSweepPlan(view).has_value() &&
           std::none_of(view.loops.begin(), view.loops.end(),
                        [](const Loop* loop) { return IsWindow(*loop); });
  }
};

}  // namespace

const Family& NormalizationFamily() {
  static const auto* const family = new NormalizationFamilyImplementation();
  return *family;
}

}  // namespace mtmc::kernel
