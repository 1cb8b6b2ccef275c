// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernel/graph/graph.h"
#include "kernel/program/program.h"

namespace mtmc::client {

// The Python class `ModelNew(Model)` whose forward binds the graph's inputs and
// the model's attributes, runs the plan's steps with their expressions evaluated, and returns or
// stores the outputs as the graph says. INVALID_ARGUMENT when the program names what neither it nor
// the graph has.
absl::StatusOr<std::string> WriteForward(const kernel::Program& program, const kernel::Graph& graph,
                                         const kernel::Bindings& bindings);

}  // namespace mtmc::client
