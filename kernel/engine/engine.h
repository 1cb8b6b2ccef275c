// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/emit/family.h"
#include "kernel/graph/graph.h"

namespace mtmc::kernel {

// What the engine may do for a job.
struct EngineOptions {
  EmitTarget target;
  bool allow_library = true;
  // Whether TF32 library calls satisfy the job's precision class.
  bool allow_tf32 = false;
};

// A program with the schedule it was printed from.
struct EngineProgram {
  std::string text;
  std::string schedule;
};

// One legal action in domain form; converted to `mtmc.v1.Action` at the door.
struct EngineAction {
  // `fuse`, `tile`, `vectorize`, `reorder`, `split`, `library`, `capture`, `tune` or `stop`.
  std::string type;
  std::vector<std::string> kernels;
  std::vector<std::string> nodes;
  int first_line = 0;
  int last_line = 0;
  std::map<std::string, std::string> arguments;
  // Stable and readable, such as `fuse gelu into linear_1 (lines 21-24)`;
  // unique among the actions of one program.
  std::string text;
};

// The built-in coder: graph in, program out, one action at a time. Stateless,
// deterministic, thread-safe, milliseconds.
//
// CreateProgram prints the naive program: one kernel group per graph node, a
// library call where no family accepts the node.
absl::StatusOr<EngineProgram> CreateProgram(const Graph& graph, const EngineOptions& options);

// Legal actions, `stop` last. INVALID_ARGUMENT when `schedule` does not fit the
// graph.
absl::StatusOr<std::vector<EngineAction>> ListActions(const Graph& graph, const std::string& schedule,
                                                      const EngineOptions& options);

// The program after one action, found by its text among the legal ones;
// NOT_FOUND when it is not legal.
absl::StatusOr<EngineProgram> ApplyAction(const Graph& graph, const std::string& schedule,
                                          const std::string& action_text, const EngineOptions& options);

}  // namespace mtmc::kernel
