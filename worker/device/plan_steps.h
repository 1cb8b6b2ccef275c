// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "kernel/program/program.h"
#include "worker/device/device.h"
#include "worker/device/plan_tensors.h"

namespace mtmc::worker {

// One step of a plan with everything known that does not change between
// executions: kernels found, expressions evaluated, scalars converted.
struct PlanStep {
  // Set for a launch; buffers are filled in before each enqueue.
  std::optional<LaunchCommand> launch;
  // Parallel to the launch's arguments; null for a scalar.
  std::vector<PlanTensor*> tensors;
  // Set for a library call.
  const kernel::LibraryCall* call = nullptr;
};

// The steps of `program` in order; refers to all of its arguments. Marks the
// tensors that need memory of their own. kCheck when a launch does not fit its
// kernel.
Outcome<std::vector<PlanStep>> PrepareSteps(const kernel::Program& program,
                                            const kernel::Bindings& bindings, Module& module,
                                            PlanTensors& tensors);

}  // namespace mtmc::worker
