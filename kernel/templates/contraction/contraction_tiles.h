// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/view/contraction_space.h"
#include "kernel/view/emit_target.h"
#include "kernel/writer/emission.h"

namespace mtmc::kernel {

// Prints a contraction in blocks of `bm` x `bn` elements that walk along k in
// steps of `bk`. Both factors of a step are staged in shared memory, fetched
// into registers while the step before is multiplied; each thread sums `tm` x
// `tn` elements in registers. Factors go through their index maps and prologue
// maps on the way in, results through the epilogue maps on the way out.
//
// REQUIRES: the knobs bm, bn, bk, tm, tn are powers of two, tm and tn at least
// 4 and at most bm and bn.
absl::StatusOr<EmittedStep> PrintTiledContraction(const GroupView& view, const EmitTarget& target,
                                                  const std::vector<std::string>& tuned);

}  // namespace mtmc::kernel
