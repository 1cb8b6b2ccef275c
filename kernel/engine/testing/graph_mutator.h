// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "mtmc/v1/graph.pb.h"

namespace mtmc::kernel {

// One small change that keeps `graph` well formed as a message, seldom as a
// graph: an extent, a rank, an element type, an argument or a result becomes
// another. Outputs follow their values, since a graph that contradicts itself
// there is refused before anything reads it.
void MutateGraph(v1::Graph& graph, std::mt19937& random);

}  // namespace mtmc::kernel
