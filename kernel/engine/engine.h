// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/action/action_space.h"
#include "kernel/action/start_schedule.h"
#include "kernel/graph/graph.h"
#include "kernel/view/emit_target.h"

namespace mtmc::kernel {

// What the engine may do for a job.
struct EngineOptions {
  EmitTarget target;
  bool allow_library = true;
  // Whether TF32 library calls satisfy the job's precision class.
  bool allow_tf32 = false;
  // What CreateProgram prints.
  StartMapping start = StartMapping::kEager;
};

// A program with the schedule it was printed from.
struct EngineProgram {
  std::string text;
  std::string schedule;
};

// The built-in coder: graph in, program out, one action at a time. Stateless,
// deterministic, thread-safe, milliseconds.
//
// CreateProgram prints the program that a search starts from (StartMapping).
// UNIMPLEMENTED when a node has neither a template nor a library call.
absl::StatusOr<EngineProgram> CreateProgram(const Graph& graph, const EngineOptions& options);

// Legal actions, `stop` last. INVALID_ARGUMENT when `schedule` does not fit the
// graph.
absl::StatusOr<std::vector<EngineAction>> ListActions(const Graph& graph,
                                                      const std::string& schedule,
                                                      const EngineOptions& options);

// Other programs to start from, as actions of type `restart`, the best bet first:
// for a start that failed.
// INVALID_ARGUMENT as ListActions.
absl::StatusOr<std::vector<EngineAction>> ListRestarts(const Graph& graph,
                                                       const std::string& schedule,
                                                       const EngineOptions& options);

// The program after one action or restart, found by its text among the legal
// ones; NOT_FOUND when it is not legal.
absl::StatusOr<EngineProgram> ApplyAction(const Graph& graph, const std::string& schedule,
                                          const std::string& action_text,
                                          const EngineOptions& options);

// The program after several actions at once, each legal for `schedule` and on
// groups of its own. NOT_FOUND as ApplyAction; FAILED_PRECONDITION when they do
// not go together.
absl::StatusOr<EngineProgram> ApplyTogether(const Graph& graph, const std::string& schedule,
                                            const std::vector<std::string>& action_texts,
                                            const EngineOptions& options);

// The program of a schedule whose groups may stand in any order.
// INVALID_ARGUMENT as ListActions.
absl::StatusOr<EngineProgram> PrintSchedule(const Graph& graph, const std::string& schedule,
                                            const EngineOptions& options);

}  // namespace mtmc::kernel
