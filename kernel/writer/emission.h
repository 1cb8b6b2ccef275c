// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kernel/program/program.h"

namespace mtmc::kernel {

// One kernel or library call of an emitted group.
struct EmittedStep {
  Step step;
  // Device source of the kernel with its comment; empty for a library call.
  std::string source;
  // Helper functions it needs, by the names of `device_functions.h`.
  std::set<std::string> functions;
};

struct Emission {
  // Scratch tensors between the group's own steps.
  std::vector<Tensor> buffers;
  std::vector<EmittedStep> steps;
};

}  // namespace mtmc::kernel
