// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/graph_edit.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernel/graph/operators.h"

namespace mtmc::kernel {
namespace {

// Calls `visit` with every value among the arguments, those in lists too.
template <typename Arguments, typename Visit>
void ForEachValue(Arguments& arguments, const Visit& visit) {
  for (auto& argument : arguments) {
    if (auto* value = std::get_if<ValueArgument>(&argument.value)) visit(value->name);
    if (auto* list = std::get_if<std::vector<GraphArgument>>(&argument.value)) {
      ForEachValue(*list, visit);
    }
  }
}

// The generator of random numbers goes on with each call, whether or not anybody reads it.
bool IsRandom(const GraphNode& node) {
  const Operator* known = FindOperator(WithoutOverload(node.op));
  return known != nullptr && known->use == Operator::Use::kRandom;
}

void RemoveUnread(Graph& graph) {
  std::set<std::string, std::less<>> read;
  for (const GraphOutput& output : graph.outputs) read.insert(output.value);
  std::vector<GraphNode> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool is_read =
        std::any_of(node->results.begin(), node->results.end(),
                    [&read](const std::string& result) { return read.contains(result); });
    if (!is_read && !IsRandom(*node)) continue;
    ForEachValue(node->arguments, [&read](const std::string& value) { read.insert(value); });
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
}

}  // namespace

GraphUses::GraphUses(const Graph& graph) : graph_(graph) {
  for (const GraphInput& input : graph.inputs) values_[input.name].type = &input.type;
  for (const GraphNode& node : graph.nodes) {
    nodes_.insert(node.name);
    ForEachValue(node.arguments,
                 [&](const std::string& value) { values_[value].readers.insert(&node); });
    for (size_t i = 0; i < node.results.size(); ++i) {
      Facts& facts = values_[node.results[i]];
      facts.type = &node.result_types[i];
      facts.producer = &node;
    }
  }
  for (const GraphOutput& output : graph.outputs) values_[output.value].is_output = true;
}

const TensorType& GraphUses::TypeOf(std::string_view value) const {
  return *values_.find(value)->second.type;
}

const GraphNode* GraphUses::ProducerOf(std::string_view value) const {
  const auto found = values_.find(value);
  return found == values_.end() ? nullptr : found->second.producer;
}

bool GraphUses::HasOneReader(std::string_view value) const {
  const auto found = values_.find(value);
  return found != values_.end() && found->second.readers.size() == 1 && !found->second.is_output;
}

bool GraphUses::IsRead(std::string_view value) const {
  const auto found = values_.find(value);
  return found != values_.end() && (!found->second.readers.empty() || found->second.is_output);
}

bool GraphUses::IsTaken(std::string_view name) const {
  return values_.contains(name) || nodes_.contains(name);
}

Graph ApplyEdit(const Graph& graph, const GraphNode& site, GraphEdit edit) {
  Graph edited = graph;
  const auto position = edited.nodes.begin() + (&site - graph.nodes.data());
  const auto added = edited.nodes.insert(position, std::make_move_iterator(edit.nodes.begin()),
                                         std::make_move_iterator(edit.nodes.end()));
  const auto rest = added + static_cast<std::ptrdiff_t>(edit.nodes.size());
  const auto redirect = [&edit](std::string& value) {
    const auto found = edit.instead.find(value);
    if (found != edit.instead.end()) value = found->second;
  };
  std::for_each(rest, edited.nodes.end(),
                [&redirect](GraphNode& node) { ForEachValue(node.arguments, redirect); });
  for (GraphOutput& output : edited.outputs) redirect(output.value);
  RemoveUnread(edited);
  return edited;
}

}  // namespace mtmc::kernel
