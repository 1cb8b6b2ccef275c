// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernel/view/emit_target.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {

// Prints the complete text of a schedule: directives, helper functions, and
// every group's kernels under the source lines they compute. Deterministic.
// INVALID_ARGUMENT when the schedule does not fit the graph: an unknown node, a
// group or knobs that its template does not accept, a value read before it is computed.
absl::StatusOr<std::string> WriteProgram(const Graph& graph, const LoopNest& nest,
                                         const NestIndex& index, const Schedule& schedule,
                                         const EmitTarget& target);

}  // namespace mtmc::kernel
