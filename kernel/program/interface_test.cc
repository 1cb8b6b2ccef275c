// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/interface.h"

#include <catch2/catch.hpp>
#include <string>

namespace mtmc::kernel {
namespace {

const TensorType kType = {.shape = {4}};

GraphNode Node(const std::string& op, const std::vector<std::string>& operands,
               const std::string& result) {
  GraphNode node{.name = result, .op = op, .results = {result}, .result_types = {kType}, .line = 9};
  for (const std::string& operand : operands) {
    node.arguments.push_back(
        {.name = node.arguments.empty() ? "self" : "other", .value = ValueArgument{operand}});
  }
  return node;
}

// Names of what a program for `nodes` must read, where `y` is the output of x, w, z.
std::string Needed(std::vector<GraphNode> nodes, const std::set<std::string>& idle = {}) {
  Graph graph;
  for (const char* name : {"x", "w", "z"}) graph.inputs.push_back({.name = name, .type = kType});
  graph.nodes = std::move(nodes);
  graph.outputs = {{.name = "out", .value = "y", .type = kType}};
  std::string text;
  for (const NeededTensor& needed : FromGraph(graph, idle).needed) {
    CHECK(needed.output == "out");
    text += needed.name;
  }
  return text;
}

}  // namespace

TEST_CASE("FromGraph needs what an output is computed from", "[program]") {
  CHECK(Needed({Node("aten::mul.Tensor", {"x", "w"}, "h"),
                Node("aten::relu.default", {"h"}, "y")}) == "xw");
  CHECK(Needed({Node("aten::mul.Tensor", {"x", "w"}, "h"),
                Node("aten::relu.default", {"z"}, "y")}) == "z");
}

TEST_CASE("FromGraph does not need what only lends its shape", "[program]") {
  CHECK(Needed({Node("aten::ones_like.default", {"x"}, "h"),
                Node("aten::add.Tensor", {"h", "w"}, "y")}) == "w");
  CHECK(Needed({Node("aten::expand_as.default", {"x", "w"}, "y")}) == "x");
}

TEST_CASE("FromGraph does not need what the reference ignores", "[program]") {
  CHECK(Needed({Node("aten::sub.Tensor", {"x", "w"}, "y")}, {"w"}) == "x");
}

TEST_CASE("FromGraph does not need what stands in the code of the reference", "[program]") {
  Graph graph;
  graph.inputs = {{.name = "x", .type = kType},
                  {.name = "c", .kind = GraphInput::Kind::kConstant, .type = kType}};
  graph.nodes = {Node("aten::mul.Tensor", {"x", "c"}, "y")};
  graph.outputs = {{.name = "out", .value = "y", .type = kType}};

  const ProgramInterface interface = FromGraph(graph);

  REQUIRE(interface.needed.size() == 1);
  CHECK(interface.needed[0].name == "x");
  // A program may declare it all the same.
  CHECK(interface.inputs.size() == 2);
}

TEST_CASE("FromGraph does not need what has no element", "[program]") {
  Graph graph;
  graph.inputs = {{.name = "x", .type = {.shape = {0, 3}}}};
  graph.outputs = {{.name = "x", .value = "x", .type = {.shape = {0, 3}}}};

  CHECK(FromGraph(graph).needed.empty());
}

}  // namespace mtmc::kernel
