// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/loop_check.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernel/graph/graph.h"

namespace mtmc::kernel {
namespace {

using Arguments = std::vector<GraphArgument>;

GraphArgument X() { return {"self", ValueArgument{"x"}}; }

GraphArgument Integer(const std::string& name, int64_t value) { return {name, value}; }

GraphArgument Integers(const std::string& name, const std::vector<int64_t>& values) {
  Arguments list;
  for (const int64_t value : values) list.push_back({"", value});
  return {name, list};
}

// Form of the last loop of a graph that applies `op` to x, of `shape`.
Loop::Form FormOf(const std::string& op, Arguments arguments, std::vector<int64_t> result,
                  std::vector<int64_t> shape = {4, 6, 8, 8}) {
  Graph graph;
  graph.inputs.push_back({.name = "x", .type = {DataType::kF32, std::move(shape)}});
  graph.inputs.push_back({.name = "w", .type = {DataType::kF32, {6, 6, 3, 3}}});
  graph.nodes.push_back({.name = "n",
                         .op = "aten::" + op + ".default",
                         .arguments = std::move(arguments),
                         .results = {"y"},
                         .result_types = {{DataType::kF32, std::move(result)}}});
  const auto nest = LowerToLoops(graph);
  REQUIRE(nest.ok());
  for (const Loop& loop : nest->loops) {
    CHECK((loop.form == Loop::Form::kOpaque || IsSound(loop, *nest)));
  }
  return nest->loops.back().form;
}

}  // namespace

TEST_CASE("A node that is as its operator wants it has a form", "[loops]") {
  CHECK(FormOf("permute", {X(), Integers("dims", {1, 0, 3, 2})}, {6, 4, 8, 8}) == Loop::Form::kMap);
  CHECK(FormOf("relu", {X()}, {4, 6, 8, 8}) == Loop::Form::kMap);
}

TEST_CASE("A malformed node is opaque", "[loops]") {
  const auto opaque = Loop::Form::kOpaque;
  const auto most = std::numeric_limits<int64_t>::max();
  const GraphArgument input{"input", ValueArgument{"x"}};
  const GraphArgument weight{"weight", ValueArgument{"w"}};
  // Arguments that are not there, and axes that stand twice or do not exist.
  CHECK(FormOf("relu", {}, {4, 6, 8, 8}) == opaque);
  CHECK(FormOf("mul", {X()}, {4, 6, 8, 8}) == opaque);
  CHECK(FormOf("permute", {X(), Integers("dims", {1, 1, 3, 2})}, {6, 6, 8, 8}) == opaque);
  CHECK(FormOf("softmax", {X(), Integer("dim", 4)}, {4, 6, 8, 8}) == opaque);
  CHECK(FormOf("sum", {X(), Integers("dim", {0, -4})}, {6, 8, 8}) == opaque);
  // Shapes that do not follow from the operands'.
  CHECK(FormOf("relu", {X()}, {4, 6, 8}) == opaque);
  CHECK(FormOf("relu", {X()}, {4, 6, 8, 9}) == opaque);
  CHECK(FormOf("reshape", {X()}, {5, 5}) == opaque);
  CHECK(FormOf("eye", {X()}, {3}) == opaque);
  // Attributes that divide by zero or leave 64 bits.
  CHECK(FormOf("channel_shuffle", {X(), Integer("groups", 0)}, {4, 6, 8, 8}) == opaque);
  CHECK(FormOf("max_pool2d", {X(), Integers("kernel_size", {0, most})}, {4, 6, 8, 8}) == opaque);
  CHECK(FormOf("conv2d", {input, weight, Integer("stride", most)}, {4, 6, 1, 1}) == opaque);
  CHECK(FormOf("conv2d", {input, weight, Integer("groups", 0)}, {4, 6, 6, 6}) == opaque);
  // Extents that index arithmetic does not hold.
  CHECK(FormOf("relu", {X()}, {most / 8}, {most / 8}) == opaque);
}

}  // namespace mtmc::kernel
