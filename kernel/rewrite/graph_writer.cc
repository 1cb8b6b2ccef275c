// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/graph_writer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <random>
#include <utility>

#include "kernel/graph/text.h"
#include "kernel/loops/interpreter.h"
#include "kernel/loops/loop.h"
#include "kernel/rewrite/rewrite.h"

namespace mtmc::kernel::testing {
namespace {

// Literals are rounded to f32, so that 1 / 3 differs by as much.
constexpr double kTolerance = 1e-6;

std::vector<double> Evaluate(const Graph& graph, unsigned seed) {
  const absl::StatusOr<LoopNest> nest = LowerToLoops(graph);
  REQUIRE(nest.ok());
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  HostTensors inputs;
  for (const GraphInput& input : graph.inputs) {
    HostTensor tensor{input.type, {}};
    for (int64_t i = 0; i < input.type.elements(); ++i) tensor.values.push_back(normal(random));
    inputs.emplace(input.name, std::move(tensor));
  }
  const absl::StatusOr<HostTensors> values = Interpret(*nest, std::move(inputs));
  INFO(values.status());
  REQUIRE(values.ok());
  const HostTensor& output = values->find(graph.outputs[0].value)->second;
  REQUIRE(output.type == graph.outputs[0].type);
  return output.values;
}

}  // namespace

GraphArgument Tensor(std::string name, const std::string& value) {
  return {std::move(name), ValueArgument{value}};
}

GraphArgument Whole(std::string name, int64_t value) { return {std::move(name), value}; }

GraphArgument Ints(std::string name, const Shape& values) {
  std::vector<GraphArgument> list;
  for (const int64_t value : values) list.push_back({"", value});
  return {std::move(name), std::move(list)};
}

std::string GraphWriter::Input(const Shape& shape) {
  std::string name = Concat("x", graph_.inputs.size());
  graph_.inputs.push_back({.name = name, .type = {DataType::kF32, shape}});
  return name;
}

std::string GraphWriter::Add(const std::string& op, std::vector<GraphArgument> arguments,
                             std::vector<Shape> shapes) {
  GraphNode node{.name = Concat("n", graph_.nodes.size()), .op = op};
  node.arguments = std::move(arguments);
  for (size_t i = 0; i < shapes.size(); ++i) {
    node.results.push_back(i == 0 ? node.name : Concat(node.name, "_r", i));
    node.result_types.push_back({DataType::kF32, shapes[i]});
  }
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().name;
}

Graph GraphWriter::Finish(const std::string& value) {
  graph_.outputs = {{.name = "y", .value = value, .type = *graph_.FindType(value)}};
  return std::move(graph_);
}

void CheckEqual(const Graph& before, const Graph& after, unsigned seed) {
  const std::vector<double> expected = Evaluate(before, seed);
  const std::vector<double> got = Evaluate(after, seed);
  REQUIRE(got.size() == expected.size());
  double largest = 1;
  double error = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    error = std::max(error, std::fabs(got[i] - expected[i]));
  }
  CHECK(error <= kTolerance * largest);
}

Graph Rewritten(const Graph& graph) {
  const absl::StatusOr<Graph> after = ApplyRewrites(graph, FindAllRewriteSteps(graph));
  REQUIRE(after.ok());
  CheckEqual(graph, *after, 7);
  return *after;
}

std::string Describe(const Graph& graph) {
  std::string text;
  for (const GraphNode& node : graph.nodes) {
    Append(text, node.name, " = ", node.op, " ", ToText(node.result_types[0]), "\n");
  }
  return text;
}

unsigned TestSeed() {
  const char* seed = std::getenv("MTMC_TEST_SEED");
  return seed == nullptr ? 1 : static_cast<unsigned>(std::atoi(seed));
}

}  // namespace mtmc::kernel::testing
