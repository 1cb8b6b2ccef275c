// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "kernel/graph/graph.h"
#include "kernel/program/checker.h"

namespace mtmc::kernel {

// The tensors that a program for `graph` binds to: forward arguments as
// `input`, parameters, model buffers and constants as `weight`, everything that
// leaves the graph as `output`, each in the graph's order and under its name.
//
// Needed is what an output is computed from, backwards over the nodes: an operand
// of which an operator reads only shape and type (`zeros_like`) is not, nor is a
// tensor without elements, nor what `idle` names, inputs of which the reference has
// shown that no output depends on them.
ProgramInterface FromGraph(const Graph& graph, const std::set<std::string>& idle = {});

}  // namespace mtmc::kernel
