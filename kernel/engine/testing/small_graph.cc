// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/testing/small_graph.h"

#include <algorithm>

namespace mtmc::kernel::testing {

const char kSource[] =
    "class Model(nn.Module):\n"
    "    def forward(self, x, w):\n"
    "        h = x @ w\n"
    "        h = torch.relu(h * 2.0)\n"
    "        return h + 1.0\n";

GraphArgument ValueOf(const std::string& name, const std::string& value) {
  return {.name = name, .value = ValueArgument{value}};
}

Graph MakeGraph(int64_t rows) {
  const TensorType x{.shape = {rows, 32}};
  const TensorType w{.shape = {32, 48}};
  const TensorType h{.shape = {rows, 48}};
  Graph graph{.source = kSource};
  graph.inputs = {{.name = "x", .type = x}, {.name = "w", .type = w}};
  graph.nodes = {
      {"matmul",
       "aten::matmul.default",
       {ValueOf("self", "x"), ValueOf("other", "w")},
       {"matmul"},
       {h},
       3,
       ""},
      {"mul", "aten::mul.Tensor", {ValueOf("self", "matmul"), {"other", 2.0}}, {"mul"}, {h}, 4, ""},
      {"relu", "aten::relu.default", {ValueOf("self", "mul")}, {"relu"}, {h}, 4, ""},
      {"add",
       "aten::add.Tensor",
       {ValueOf("self", "relu"), {"other", 1.0}, {"alpha", int64_t{1}}},
       {"add"},
       {h},
       5,
       ""}};
  graph.outputs = {{.name = "y", .value = "add", .type = h}};
  return graph;
}

EngineOptions CudaOptions(StartMapping start) {
  return {.target = {.dialect = Dialect::kCuda}, .start = start};
}

std::vector<std::string> TextsOf(const std::vector<EngineAction>& actions) {
  std::vector<std::string> texts;
  texts.reserve(actions.size());
  for (const EngineAction& action : actions) texts.push_back(action.text);
  return texts;
}

bool Has(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

}  // namespace mtmc::kernel::testing
