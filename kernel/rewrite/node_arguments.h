// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/graph/graph.h"

namespace mtmc::kernel {

// Arguments of a node as rules read them. A missing argument and None are alike: absent.

// Operator without namespace and overload, such as `conv2d`.
std::string_view OperatorOf(const GraphNode& node);

bool HasArgument(const GraphNode& node, std::string_view name);

// Name of a tensor argument; absent where it is none.
std::optional<std::string> FindTensor(const GraphNode& node, std::string_view name);

// A number of any kind.
std::optional<double> FindNumber(const GraphNode& node, std::string_view name);

std::optional<int64_t> FindInt(const GraphNode& node, std::string_view name);

bool IsTrue(const GraphNode& node, std::string_view name);

// A list of `count` whole numbers, where one number or a list of one is repeated; all
// `otherwise` for an absent or empty one. Absent for anything else.
std::optional<std::vector<int64_t>> FindInts(const GraphNode& node, std::string_view name,
                                             size_t count, int64_t otherwise);

// The axes that a list or a number names, sorted, non-negative, each once; all of `rank` for
// an absent or empty one. Absent for anything else.
std::optional<std::vector<int>> FindAxes(const GraphNode& node, std::string_view name, int rank);

// Non-negative form of an axis argument; absent where it is none of `rank`.
std::optional<int> FindAxis(const GraphNode& node, std::string_view name, int rank);

}  // namespace mtmc::kernel
