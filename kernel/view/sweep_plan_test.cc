// SPDX-License-Identifier: Apache-2.0
#include "kernel/view/sweep_plan.h"

#include <catch2/catch.hpp>

#include "kernel/view/group_kind.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {
namespace {

// A group of all nodes of a graph over one input x[4, 6, 8].
struct Group {
  explicit Group(const std::vector<GraphNode>& nodes) {
    graph.inputs.push_back({.name = "x", .type = {DataType::kF32, {4, 6, 8}}});
    for (const GraphNode& node : nodes) {
      group.nodes.push_back(node.name);
      graph.nodes.push_back(node);
    }
    const GraphNode& last = graph.nodes.back();
    graph.outputs.push_back({.name = "y", .value = last.results[0], .type = last.result_types[0]});
    nest = *LowerToLoops(graph);
    index.emplace(graph, nest);
    view = MakeGroupView(graph, nest, *index, group);
  }

  Graph graph;
  KernelGroup group{.name = "group"};
  LoopNest nest;
  std::optional<NestIndex> index;
  GroupView view;
};

GraphNode Softmax(int64_t dim) {
  return {.name = "softmax",
          .op = "aten::softmax.int",
          .arguments = {{"self", ValueArgument{"x"}}, {"dim", dim}},
          .results = {"softmax"},
          .result_types = {{DataType::kF32, {4, 6, 8}}}};
}

GraphNode Mean(const std::string& of, std::vector<GraphArgument> dims, std::vector<int64_t> shape) {
  return {.name = "mean",
          .op = "aten::mean.dim",
          .arguments = {{"self", ValueArgument{of}}, {"dim", std::move(dims)}, {"keepdim", false}},
          .results = {"mean"},
          .result_types = {{DataType::kF32, std::move(shape)}}};
}

TEST_CASE("A softmax over the last dimension is one stage of contiguous columns", "[emit]") {
  const Group group({Softmax(-1)});

  const std::optional<SweepPlan> plan = MakeSweepPlan(group.view);

  REQUIRE(plan.has_value());
  REQUIRE(plan->stages.size() == 1);
  CHECK(plan->stages[0].space.rows == 24);
  CHECK(plan->stages[0].space.inner == 8);
  CHECK(plan->stages[0].space.columns_are_contiguous);
  CHECK(plan->stages[0].full_outputs.size() == 1);
  CHECK(plan->kept.empty());
}

TEST_CASE("A softmax over a middle dimension has contiguous rows", "[emit]") {
  const Group group({Softmax(1)});

  const std::optional<SweepPlan> plan = MakeSweepPlan(group.view);

  REQUIRE(plan.has_value());
  CHECK(plan->stages[0].space.rows == 32);
  CHECK(plan->stages[0].space.row_run == 8);
  CHECK(plan->stages[0].space.rows_are_contiguous);
}

TEST_CASE("A reduction over the rows of another one needs a stage of its own", "[emit]") {
  const Group group({Softmax(-1), Mean("softmax", {{"", int64_t{0}}}, {6, 8})});

  const std::optional<SweepPlan> plan = MakeSweepPlan(group.view);

  REQUIRE(plan.has_value());
  REQUIRE(plan->stages.size() == 2);
  CHECK(plan->kept == std::vector<std::string>{"softmax_max", "softmax_sum"});
  CHECK(plan->stages[1].row_outputs == std::vector<std::string>{"mean"});
}

TEST_CASE("A reduction over the same rows joins as a second sweep", "[emit]") {
  const Group group({Softmax(-1), Mean("softmax", {{"", int64_t{-1}}}, {4, 6})});

  const std::optional<SweepPlan> plan = MakeSweepPlan(group.view);

  REQUIRE(plan.has_value());
  REQUIRE(plan->stages.size() == 1);
  CHECK(plan->stages[0].levels.size() == 2);
}

TEST_CASE("A split plan stores elements in a stage without reductions", "[emit]") {
  const Group group({Softmax(-1)});

  const std::optional<SweepPlan> plan = MakeSplitPlan(group.view);

  REQUIRE(plan.has_value());
  REQUIRE(plan->stages.size() == 2);
  CHECK(plan->stages[0].full_outputs.empty());
  CHECK(plan->stages[1].map_outputs == std::vector<std::string>{"softmax"});
}

TEST_CASE("A sum over grouped channels is no window", "[emit]") {
  const Group group({Mean("x", {{"", int64_t{1}}}, {4, 8})});

  CHECK_FALSE(IsWindow(group.nest.loops[0]));
}

}  // namespace
}  // namespace mtmc::kernel
