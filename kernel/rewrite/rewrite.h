// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/graph/graph.h"
#include "kernel/rewrite/graph_edit.h"
#include "kernel/schedule/schedule.h"

namespace mtmc::kernel {

// A change of the graph that is exact in real arithmetic: other operators, the same
// function of inputs and parameters but for rounding, infinities and NaN. Each is offered only
// where it saves work, or brings it into a form that is done faster.
struct Rewrite {
  // What it is for: fewer operations, or operands in memory as a library likes them.
  enum class Kind { kAlgebra, kLayout };
  // In schedules, such as `reduce_first`.
  std::string_view name;
  // As a step and a program say it, such as "reduce before multiplying".
  std::string_view summary;
  // What it changes at a node; absent where it does not apply. A node may be malformed in every
  // way its Graph allows, so that rules use checked access; where it throws none applies.
  std::optional<GraphEdit> (*find)(const GraphUses& uses, const GraphNode& node);
  Kind kind = Kind::kAlgebra;
};

// All of them, in the order in which they are tried.
std::span<const Rewrite> Rewrites();

// Null when there is none of the name.
const Rewrite* FindRewrite(std::string_view name);

// The steps of a kind that can be taken next, one a node, in the order of the graph.
std::vector<RewriteStep> FindRewriteSteps(const Graph& graph,
                                          Rewrite::Kind kind = Rewrite::Kind::kAlgebra);

// Steps of a kind until none is left.
std::vector<RewriteStep> FindAllRewriteSteps(const Graph& graph,
                                             Rewrite::Kind kind = Rewrite::Kind::kAlgebra);

// The graph after the steps, in order. INVALID_ARGUMENT for a step that cannot be taken.
absl::StatusOr<Graph> ApplyRewrites(const Graph& graph, std::span<const RewriteStep> steps);

}  // namespace mtmc::kernel
