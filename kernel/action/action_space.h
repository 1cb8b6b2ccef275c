// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernel/action/legal_action.h"
#include "kernel/action/partition.h"

namespace mtmc::kernel {

struct ActionSpaceOptions {
  bool allow_library = true;
  // Whether TF32 library calls satisfy the job's precision class.
  bool allow_tf32 = false;
};

// Every legal action of a schedule, in a fixed order: fuse (whole chains first),
// library, knob moves, capture, tune, stop. Illegal ones are absent. The
// context and the schedule must outlive the result. Deterministic.
std::vector<LegalAction> EnumerateActions(const ScheduleContext& context, const Schedule& schedule,
                                          const ActionSpaceOptions& options);

}  // namespace mtmc::kernel
