// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernel/graph/graph.h"

namespace mtmc::kernel {

// First and last line of the user's file that the nodes come from; zeros when
// none is known.
struct SourceLines {
  int first = 0;
  int last = 0;
};

SourceLines LinesOf(const Graph& graph, const std::vector<std::string>& nodes);

// `(line 21)`, `(lines 21-24)`, or empty when the lines are not known.
std::string ToText(const SourceLines& lines);

// Comment lines that quote what the user wrote for these nodes:
//
//   // y = gelu(x) * scale  (line 21)
std::string SourceComment(const Graph& graph, const std::vector<std::string>& nodes);

}  // namespace mtmc::kernel
