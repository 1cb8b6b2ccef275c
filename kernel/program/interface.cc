// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/interface.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <variant>
#include <vector>

namespace mtmc::kernel {
namespace {

// Why a value of the graph matters.
struct Need {
  std::string output;
  // Of the node that reads it.
  int line = 0;
};

using Needs = std::map<std::string, Need, std::less<>>;

// Operators that take shape and type from the argument, which has `self` for a name
// unless it is said, and no element.
struct MetadataOperator {
  std::string_view op;
  std::string_view argument = "self";
};

constexpr std::array kMetadataOperators = {MetadataOperator{"zeros_like"},
                                           MetadataOperator{"ones_like"},
                                           MetadataOperator{"empty_like"},
                                           MetadataOperator{"full_like"},
                                           MetadataOperator{"rand_like"},
                                           MetadataOperator{"randn_like"},
                                           MetadataOperator{"randint_like"},
                                           MetadataOperator{"new_zeros"},
                                           MetadataOperator{"new_ones"},
                                           MetadataOperator{"new_empty"},
                                           MetadataOperator{"new_full"},
                                           MetadataOperator{"new_empty_strided"},
                                           MetadataOperator{"sym_size"},
                                           MetadataOperator{"sym_stride"},
                                           MetadataOperator{"sym_numel"},
                                           MetadataOperator{"size"},
                                           MetadataOperator{"numel"},
                                           MetadataOperator{"dim"},
                                           MetadataOperator{"zero"},
                                           MetadataOperator{"fill"},
                                           MetadataOperator{"copy"},
                                           MetadataOperator{"view_as", "other"},
                                           MetadataOperator{"reshape_as", "other"},
                                           MetadataOperator{"expand_as", "other"},
                                           MetadataOperator{"type_as", "other"}};

// `zeros_like` of `aten::zeros_like.default`.
std::string_view PlainName(std::string_view op) {
  if (const size_t colons = op.find("::"); colons != std::string_view::npos) {
    op.remove_prefix(colons + 2);
  }
  return op.substr(0, op.find('.'));
}

bool ReadsElements(const GraphNode& node, const GraphArgument& argument) {
  const std::string_view name = PlainName(node.op);
  return std::none_of(kMetadataOperators.begin(), kMetadataOperators.end(),
                      [&](const MetadataOperator& known) {
                        return known.op == name && known.argument == argument.name;
                      });
}

class NeedFinder {
 public:
  explicit NeedFinder(const Graph& graph) : graph_(graph) {}

  Needs Run() {
    for (const GraphOutput& output : graph_.outputs) Add(output.value, {.output = output.name});
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) Visit(*node);
    return std::move(needs_);
  }

 private:
  void Visit(const GraphNode& node) {
    for (const std::string& result : node.results) {
      const auto need = needs_.find(result);
      if (need == needs_.end()) continue;
      const Need reason{.output = need->second.output, .line = node.line};
      for (const GraphArgument& argument : node.arguments) {
        if (ReadsElements(node, argument)) AddValues(argument, reason);
      }
      return;
    }
  }

  void AddValues(const GraphArgument& argument, const Need& need) {
    if (const auto* value = std::get_if<ValueArgument>(&argument.value)) Add(value->name, need);
    if (const auto* list = std::get_if<std::vector<GraphArgument>>(&argument.value)) {
      for (const GraphArgument& element : *list) AddValues(element, need);
    }
  }

  void Add(const std::string& value, const Need& need) {
    const TensorType* type = graph_.FindType(value);
    const bool is_empty = type != nullptr &&
                          std::find(type->shape.begin(), type->shape.end(), 0) != type->shape.end();
    if (!is_empty) needs_.emplace(value, need);
  }

  const Graph& graph_;
  Needs needs_;
};

}  // namespace

ProgramInterface FromGraph(const Graph& graph, const std::set<std::string>& idle) {
  ProgramInterface interface;
  const Needs needs = NeedFinder(graph).Run();
  for (const GraphInput& input : graph.inputs) {
    const bool is_user_input = input.kind == GraphInput::Kind::kUserInput;
    interface.inputs.push_back(
        {.role = is_user_input ? Tensor::Role::kInput : Tensor::Role::kWeight,
         .name = input.name,
         .type = input.type});
    const auto need = needs.find(input.name);
    if (need == needs.end() || idle.contains(input.name)) continue;
    // A constant of the code never is another one: a program may have it in its text.
    if (input.kind == GraphInput::Kind::kConstant) continue;
    interface.needed.push_back(
        {.name = input.name, .output = need->second.output, .line = need->second.line});
  }
  for (const GraphOutput& output : graph.outputs) {
    interface.outputs.push_back(
        {.role = Tensor::Role::kOutput, .name = output.name, .type = output.type});
  }
  return interface;
}

}  // namespace mtmc::kernel
