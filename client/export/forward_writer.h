// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernel/graph/graph.h"
#include "kernel/program/program.h"

namespace mtmc::client {

// The Python of a program: its steps with their expressions evaluated, and a class
// `ModelNew(Model)` whose forward gives them the arguments and the model's attributes, and
// returns or stores the outputs as the graph says. It needs the texts of `runtime`.
// INVALID_ARGUMENT when the program names what neither it nor the graph has.
absl::StatusOr<std::string> WriteForward(const kernel::Program& program, const kernel::Graph& graph,
                                         const kernel::Bindings& bindings);

}  // namespace mtmc::client
