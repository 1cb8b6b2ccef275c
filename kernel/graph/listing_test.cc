// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/listing.h"

#include <catch2/catch.hpp>

namespace mtmc::kernel {
namespace {

TEST_CASE("ListGraph shows each operation with shapes and its source line once", "[graph]") {
  const TensorType type = *FindTensorType("f32[4]");
  Graph graph;
  graph.source = "import torch\n    x = torch.relu(x) + 1.0\n";
  graph.inputs.push_back({.name = "x", .type = type});
  graph.inputs.push_back(
      {.name = "w", .kind = GraphInput::Kind::kParameter, .type = type, .target = "fc.w"});
  graph.nodes.push_back({.name = "relu",
                         .op = "aten::relu.default",
                         .results = {"relu"},
                         .result_types = {type},
                         .line = 2});
  graph.nodes.back().arguments.push_back({.name = "self", .value = ValueArgument{"x"}});
  graph.nodes.push_back({.name = "add",
                         .op = "aten::add.Tensor",
                         .results = {"add"},
                         .result_types = {type},
                         .line = 2});
  graph.nodes.back().arguments.push_back({.name = "self", .value = ValueArgument{"relu"}});
  graph.nodes.back().arguments.push_back({.name = "other", .value = 1.0});
  graph.nodes.back().arguments.push_back({.name = "alpha", .value = NoneArgument{}});
  graph.outputs.push_back({.name = "out_0", .value = "add", .type = type});

  CHECK(ListGraph(graph) ==
        "input x : f32[4]\n"
        "weight w : f32[4]  # fc.w\n"
        "relu = aten::relu.default(x) : f32[4]  # line 2: x = torch.relu(x) + 1.0\n"
        "add = aten::add.Tensor(relu, 1.0, None) : f32[4]  # line 2\n"
        "output out_0 = add : f32[4]\n");
}

}  // namespace
}  // namespace mtmc::kernel
