// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/loop.h"

#include <catch2/catch.hpp>

#include "absl/status/status.h"

namespace mtmc::kernel {
namespace {

GraphArgument Value(const std::string& name, const std::string& value) {
  return {name, ValueArgument{value}};
}

// A graph of one node over inputs x and w.
Graph MakeGraph(GraphNode node) {
  Graph graph;
  graph.inputs.push_back({.name = "x", .type = {DataType::kF32, {4, 8}}});
  graph.inputs.push_back({.name = "w", .type = {DataType::kF32, {3, 8}}});
  node.results = {node.name};
  graph.outputs.push_back({.name = "y", .value = node.name, .type = node.result_types[0]});
  graph.nodes.push_back(std::move(node));
  return graph;
}

std::string Lowered(const Graph& graph) {
  const absl::StatusOr<LoopNest> nest = LowerToLoops(graph);
  return nest.ok() ? ToText(*nest) : nest.status().ToString();
}

TEST_CASE("LowerToLoops writes a softmax as one pair reduction and a map", "[loops]") {
  const Graph graph = MakeGraph({.name = "softmax",
                                 .op = "aten::softmax.int",
                                 .arguments = {Value("self", "x"), {"dim", int64_t{-1}}},
                                 .result_types = {{DataType::kF32, {4, 8}}}});

  CHECK(Lowered(graph) ==
        "softmax_max: f32, softmax_sum: f32 [i0 < 4, i1 < 1] = "
        "reduce online_softmax[i2 < 8] x[i0, i2]\n"
        "softmax: f32 [i0 < 4, i1 < 8] = "
        "map exp(x[i0, i1] - softmax_max[i0, 0]) / softmax_sum[i0, 0]\n");
}

TEST_CASE("LowerToLoops leaves a join of very many parts to the library", "[loops]") {
  const auto joined = [](size_t parts) {
    const std::vector<GraphArgument> tensors(parts, Value("", "x"));
    return Lowered(
        MakeGraph({.name = "cat",
                   .op = "aten::cat.default",
                   .arguments = {{"tensors", tensors}, {"dim", int64_t{0}}},
                   .result_types = {{DataType::kF32, {static_cast<int64_t>(4 * parts), 8}}}}));
  };

  CHECK(joined(64).find("opaque") == std::string::npos);
  CHECK(joined(65) == "cat: f32 = opaque cat\n");
}

TEST_CASE("LowerToLoops writes memory that nobody filled as zeros", "[loops]") {
  const Graph graph = MakeGraph({.name = "empty_like",
                                 .op = "aten::empty_like.default",
                                 .arguments = {Value("self", "x")},
                                 .result_types = {{DataType::kF32, {4, 8}}}});

  CHECK(Lowered(graph) == "empty_like: f32 [i0 < 4, i1 < 8] = move 0.0f\n");
}

TEST_CASE("LowerToLoops writes a linear layer as a contraction", "[loops]") {
  const Graph graph =
      MakeGraph({.name = "linear",
                 .op = "aten::linear.default",
                 .arguments = {Value("input", "x"), Value("weight", "w"), {"bias", NoneArgument{}}},
                 .result_types = {{DataType::kF32, {4, 3}}}});

  CHECK(Lowered(graph) ==
        "linear: f32 [i0 < 4, i1 < 3] = contract[i2 < 8] x[i0, i2] * w[i1, i2]\n");
}

TEST_CASE("LowerToLoops keeps the index of a dimension that a view keeps", "[loops]") {
  const std::vector<GraphArgument> arguments = {Value("self", "x")};
  const Graph graph = MakeGraph({.name = "view",
                                 .op = "aten::view.default",
                                 .arguments = arguments,
                                 .result_types = {{DataType::kF32, {4, 2, 4}}}});

  CHECK(Lowered(graph) == "view: f32 [i0 < 4, i1 < 2, i2 < 4] = move x[i0, i1 * 4 + i2]\n");
}

TEST_CASE("LowerToLoops leaves an unknown operator opaque", "[loops]") {
  const Graph graph = MakeGraph({.name = "mystery",
                                 .op = "aten::fft_fft.default",
                                 .arguments = {Value("self", "x")},
                                 .result_types = {{DataType::kF32, {4, 8}}}});

  CHECK(Lowered(graph) == "mystery: f32 = opaque mystery\n");
}

TEST_CASE("LowerToLoops refuses a use before the definition", "[loops]") {
  const Graph graph = MakeGraph({.name = "relu",
                                 .op = "aten::relu.default",
                                 .arguments = {Value("self", "later")},
                                 .result_types = {{DataType::kF32, {4, 8}}}});

  const absl::StatusOr<LoopNest> nest = LowerToLoops(graph);

  CHECK(nest.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(nest.status().message() == "node \"relu\" uses \"later\" before it is defined");
}

}  // namespace
}  // namespace mtmc::kernel
