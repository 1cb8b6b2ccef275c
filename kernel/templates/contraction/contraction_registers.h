// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/view/contraction_space.h"
#include "kernel/view/emit_target.h"
#include "kernel/writer/emission.h"

namespace mtmc::kernel {

// Prints a contraction for a CPU device: one work-item per group, no local
// memory. It computes `tr` rows of a panel of columns, `tc` columns (or vectors
// of columns) at a time with all sums in vector registers; lanes lie along k
// when both factors are contiguous there, else along the columns. Neighbouring
// groups take the same panel, which stays in the cache. The epilogue is one
// plain loop along the panel, for the compiler to vectorize.
absl::StatusOr<EmittedStep> PrintRegisterContraction(const GroupView& view,
                                                     const EmitTarget& target,
                                                     const std::vector<std::string>& tuned);

// Whether extents and types allow that form.
bool HasRegisterForm(const GroupView& view);

}  // namespace mtmc::kernel
