// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernel/graph/graph.h"

namespace mtmc::kernel {

// Readable text of a graph, one line per input, operation and output in
// execution order, for prompts and for people:
//
//   weight w : f32[64,128]  # fc.weight
//   linear = aten::linear.default(x, w, None) : f32[16,64]  # line 12: x = self.fc(x)
//   output out_0 = linear : f32[16,64]
//
// Arguments are positional; the source line is shown at its first operation
// only. Not parsed by anything.
std::string ListGraph(const Graph& graph);

// `aten::linear.default(x, w, None)`.
std::string ListCall(const GraphNode& node);

}  // namespace mtmc::kernel
