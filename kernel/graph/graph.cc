// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/graph.h"

#include <algorithm>
#include <utility>

namespace mtmc::kernel {

const GraphArgument* GraphNode::FindArgument(std::string_view argument_name) const {
  const auto it = std::find_if(arguments.begin(), arguments.end(),
                               [&](const GraphArgument& a) { return a.name == argument_name; });
  return it == arguments.end() ? nullptr : &*it;
}

const TensorType* Graph::FindType(std::string_view value) const {
  if (const GraphInput* input = FindInput(value)) return &input->type;
  const GraphNode* node = FindProducer(value);
  if (node == nullptr) return nullptr;
  const auto it = std::find(node->results.begin(), node->results.end(), value);
  return &node->result_types[static_cast<size_t>(it - node->results.begin())];
}

const GraphNode* Graph::FindProducer(std::string_view value) const {
  const auto it = std::find_if(nodes.begin(), nodes.end(), [&](const GraphNode& node) {
    return std::find(node.results.begin(), node.results.end(), value) != node.results.end();
  });
  return it == nodes.end() ? nullptr : &*it;
}

const GraphInput* Graph::FindInput(std::string_view name) const {
  const auto it = std::find_if(inputs.begin(), inputs.end(),
                               [&](const GraphInput& input) { return input.name == name; });
  return it == inputs.end() ? nullptr : &*it;
}

Structure Graph::ResultOrDefault() const {
  if (result) return *result;
  Structure::Container all;
  for (const GraphOutput& output : outputs) {
    if (output.kind == GraphOutput::Kind::kUserOutput) {
      all.items.push_back({Structure::OutputName{output.name}});
    }
  }
  if (all.items.empty()) return {Structure::None()};
  if (all.items.size() == 1) return std::move(all.items.front());
  return {std::move(all)};
}

}  // namespace mtmc::kernel
