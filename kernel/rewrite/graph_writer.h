// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/graph/graph.h"

// Graphs written by hand or drawn, and whether two of them compute the same. For the tests of this
// folder.
namespace mtmc::kernel::testing {

using Shape = std::vector<int64_t>;

GraphArgument Tensor(std::string name, const std::string& value);
GraphArgument Whole(std::string name, int64_t value);
GraphArgument Ints(std::string name, const Shape& values);

// Writes a graph of f32 tensors operator by operator.
class GraphWriter {
 public:
  // The name of a new input.
  std::string Input(const Shape& shape);

  // The name of the first result; results have `shapes`.
  std::string Add(const std::string& op, std::vector<GraphArgument> arguments,
                  std::vector<Shape> shapes);

  const Shape& ShapeOf(const std::string& value) const { return graph_.FindType(value)->shape; }

  // The graph, whose output is `value`.
  Graph Finish(const std::string& value);

 private:
  Graph graph_;
};

// Fails the test unless both graphs compute the same of inputs that `seed` draws: their loops are
// interpreted in double precision.
void CheckEqual(const Graph& before, const Graph& after, unsigned seed);

// The graph after all rewrites, which computes the same.
Graph Rewritten(const Graph& graph);

// A line for each node.
std::string Describe(const Graph& graph);

// Of the tests that draw: `MTMC_TEST_SEED`, or 1.
unsigned TestSeed();

}  // namespace mtmc::kernel::testing
