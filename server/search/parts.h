// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "kernel/schedule/schedule.h"

namespace mtmc::search {

// Nodes that two schedules both cut out as whole groups, as indices of groups of either, in
// ascending order.
struct Part {
  std::vector<size_t> ours;
  std::vector<size_t> theirs;
};

// The least such sets; empty where the schedules are not of the same nodes, or
// rewrite the graph in different ways.
std::vector<Part> PartsOf(const kernel::Schedule& ours, const kernel::Schedule& theirs);

// What is new in a part must take less than this of the time that is known for it: below is
// noise of a single kernel.
inline constexpr double kPartRatio = 0.95;

// What a program computes in which kernels, whatever their order and names.
std::set<std::string> KernelsOf(const kernel::Schedule& schedule);

// Appends a group with its swept knobs, under a name that is free.
void AppendGroup(const kernel::Schedule& from, size_t group, kernel::Schedule& to);

}  // namespace mtmc::search
