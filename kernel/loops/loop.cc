// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/loop.h"

#include <algorithm>
#include <exception>
#include <set>

#include "absl/status/status.h"
#include "kernel/loops/loop_check.h"
#include "kernel/loops/node_lowering.h"
#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

Loop OpaqueLoop(const GraphNode& node) {
  Loop loop;
  loop.form = Loop::Form::kOpaque;
  loop.results = node.results;
  loop.types = node.result_types;
  loop.node = node.name;
  return loop;
}

// Whether every result of the node got its loop.
bool DefinesAllResults(const LoopNest& nest, size_t first_loop, const GraphNode& node) {
  std::set<std::string, std::less<>> defined;
  for (size_t i = first_loop; i < nest.loops.size(); ++i) {
    defined.insert(nest.loops[i].results.begin(), nest.loops[i].results.end());
  }
  return std::all_of(node.results.begin(), node.results.end(),
                     [&defined](const std::string& name) { return defined.contains(name); });
}

// Every value a node uses, lists included.
void CollectUses(const std::vector<GraphArgument>& arguments, std::vector<std::string>& uses) {
  for (const GraphArgument& argument : arguments) {
    if (const auto* value = std::get_if<ValueArgument>(&argument.value)) {
      uses.push_back(value->name);
    } else if (const auto* list = std::get_if<std::vector<GraphArgument>>(&argument.value)) {
      CollectUses(*list, uses);
    }
  }
}

// Whether the operator's lowering takes the node as it is written. A malformed
// node ends in an exception of the standard library's checked access.
bool TryLower(const OpTable& table, NodeLowering& lowering) {
  const auto found = table.find(lowering.op());
  if (found == table.end()) return false;
  try {
    return found->second(lowering);
  } catch (const std::exception&) {
    return false;
  }
}

// Whether all that a node touches is of a size that index arithmetic can hold.
bool HasUsualSizes(const GraphNode& node, const LoopNest& nest) {
  std::vector<std::string> uses;
  CollectUses(node.arguments, uses);
  return std::all_of(uses.begin(), uses.end(),
                     [&nest](const std::string& use) {
                       return IsWithinLimits(nest.types.find(use)->second.shape);
                     }) &&
         std::all_of(node.result_types.begin(), node.result_types.end(),
                     [](const TensorType& type) { return IsWithinLimits(type.shape); });
}

bool AreSound(const LoopNest& nest, size_t first_loop) {
  return std::all_of(nest.loops.begin() + static_cast<int64_t>(first_loop), nest.loops.end(),
                     [&nest](const Loop& loop) { return IsSound(loop, nest); });
}

void LowerOne(const OpTable& table, const Graph& graph, const GraphNode& node, LoopNest& nest) {
  const size_t first_loop = nest.loops.size();
  NodeLowering lowering(graph, node, nest);
  const bool has_form = HasUsualSizes(node, nest) && TryLower(table, lowering) &&
                        DefinesAllResults(nest, first_loop, node) && AreSound(nest, first_loop);
  if (!has_form) {
    for (size_t i = first_loop; i < nest.loops.size(); ++i) {
      for (const std::string& name : nest.loops[i].results) nest.types.erase(name);
    }
    nest.loops.resize(first_loop);
    nest.loops.push_back(OpaqueLoop(node));
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    nest.types.insert_or_assign(node.results[i], node.result_types[i]);
  }
}

absl::Status CheckNode(const GraphNode& node, const LoopNest& nest) {
  if (node.results.size() != node.result_types.size()) {
    return absl::InvalidArgumentError("node \"" + node.name + "\" has " +
                                      std::to_string(node.results.size()) + " results and " +
                                      std::to_string(node.result_types.size()) + " result types");
  }
  std::vector<std::string> uses;
  CollectUses(node.arguments, uses);
  for (const std::string& use : uses) {
    if (!nest.types.contains(use)) {
      return absl::InvalidArgumentError("node \"" + node.name + "\" uses \"" + use +
                                        "\" before it is defined");
    }
  }
  for (const std::string& result : node.results) {
    if (nest.types.contains(result)) {
      return absl::InvalidArgumentError("value \"" + result + "\" is defined twice");
    }
  }
  return absl::OkStatus();
}

const char* CombinerText(Combiner combiner) {
  switch (combiner) {
    case Combiner::kSum:
      return "sum";
    case Combiner::kProduct:
      return "product";
    case Combiner::kMax:
      return "max";
    case Combiner::kMin:
      return "min";
    case Combiner::kAny:
      return "any";
    case Combiner::kAll:
      return "all";
    case Combiner::kArgMax:
      return "arg_max";
    case Combiner::kArgMin:
      return "arg_min";
    case Combiner::kWelford:
      return "welford";
    case Combiner::kOnlineSoftmax:
      return "online_softmax";
  }
  return "?";
}

// `[i0 < 4, i1 < 8]` for axes `first` to `last` - 1.
std::string AxesText(const Loop& loop, int first, int last) {
  std::string text = "[";
  for (int axis = first; axis < last; ++axis) {
    if (axis > first) text += ", ";
    text += "i" + std::to_string(axis) + " < " +
            std::to_string(loop.extents[static_cast<size_t>(axis)]);
  }
  return text + "]";
}

std::string FormText(const Loop& loop) {
  const int axes = static_cast<int>(loop.extents.size());
  const std::string reduced = AxesText(loop, loop.output_axes(), axes);
  switch (loop.form) {
    case Loop::Form::kMap:
      return (loop.is_movement ? "move " : "map ") + ToText(loop.body);
    case Loop::Form::kReduce:
      return std::string("reduce ") + CombinerText(loop.combiner) + reduced + " " +
             ToText(loop.body);
    case Loop::Form::kContract:
      return "contract" + reduced + " " + ToText(loop.lhs) + " * " + ToText(loop.rhs);
    case Loop::Form::kScan:
      return std::string("scan ") + CombinerText(loop.combiner) + " along i" +
             std::to_string(loop.scan_axis) + " " + ToText(loop.body);
    case Loop::Form::kOpaque:
      return "opaque " + loop.node;
  }
  return "?";
}

std::string LoopText(const Loop& loop) {
  std::string names;
  for (size_t i = 0; i < loop.results.size(); ++i) {
    if (i > 0) names += ", ";
    names += loop.results[i] + ": " + std::string(ToText(loop.types[i].data_type));
  }
  if (loop.form == Loop::Form::kOpaque) return names + " = " + FormText(loop);
  return names + " " + AxesText(loop, 0, loop.output_axes()) + " = " + FormText(loop);
}

}  // namespace

const Loop* LoopNest::FindProducer(std::string_view value) const {
  for (const Loop& loop : loops) {
    for (const std::string& result : loop.results) {
      if (result == value) return &loop;
    }
  }
  return nullptr;
}

std::vector<const Loop*> LoopNest::OfNode(std::string_view node) const {
  std::vector<const Loop*> found;
  for (const Loop& loop : loops) {
    if (loop.node == node) found.push_back(&loop);
  }
  return found;
}

absl::StatusOr<LoopNest> LowerToLoops(const Graph& graph) {
  LoopNest nest;
  for (const GraphInput& input : graph.inputs) nest.types.emplace(input.name, input.type);
  for (const GraphNode& node : graph.nodes) {
    if (absl::Status status = CheckNode(node, nest); !status.ok()) return status;
    LowerOne(Lowerings(), graph, node, nest);
  }
  return nest;
}

std::string ToText(const LoopNest& nest) {
  std::string text;
  for (const Loop& loop : nest.loops) text += LoopText(loop) + "\n";
  return text;
}

}  // namespace mtmc::kernel
