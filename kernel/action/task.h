// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/action/partition.h"

namespace mtmc::kernel {

// What these nodes compute together, as text: operators, constants, shapes,
// types and who reads whom, without a name of the graph. Groups with equal texts
// are one task: what is a good kernel for one is one for the other. Values from
// outside count by their type and the movements they are read through.
// REQUIRES: the nodes are of the graph, in definition order.
std::string TaskOf(const ScheduleContext& context, const std::vector<std::string>& nodes);

// The tasks of a graph without a device. Immutable.
class TaskReader {
 public:
  // INVALID_ARGUMENT where the graph has no loops (LowerToLoops). The graph must outlive
  // the reader.
  static absl::StatusOr<std::unique_ptr<const TaskReader>> Create(const Graph& graph);

  TaskReader(const TaskReader&) = delete;
  TaskReader& operator=(const TaskReader&) = delete;

  // As TaskOf, without its requirement: the nodes are put in definition order. Empty if one
  // of them is not of the graph.
  std::string Read(std::vector<std::string>& nodes) const;

 private:
  TaskReader(const Graph& graph, LoopNest nest);

  const Graph& graph_;
  const LoopNest nest_;
  const NestIndex index_;
};

}  // namespace mtmc::kernel
