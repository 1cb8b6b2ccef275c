// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/graph/graph.h"
#include "kernel/program/checker.h"

namespace mtmc::kernel {

// The tensors that a program for `graph` binds to: forward arguments as
// `input`, parameters, model buffers and constants as `weight`, everything that
// leaves the graph as `output`, each in the graph's order and under its name.
ProgramInterface FromGraph(const Graph& graph);

}  // namespace mtmc::kernel
