// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/listing.h"

#include <string_view>

#include "absl/strings/escaping.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

std::string ArgumentText(const GraphArgument& argument) {
  struct Visitor {
    std::string operator()(const NoneArgument&) const { return "None"; }

    std::string operator()(const ValueArgument& value) const { return value.name; }

    std::string operator()(int64_t value) const { return Concat(value); }

    std::string operator()(double value) const { return RealText(value); }

    std::string operator()(bool value) const { return value ? "True" : "False"; }

    std::string operator()(const std::string& value) const {
      return Concat("\"", absl::Utf8SafeCEscape(value), "\"");
    }

    std::string operator()(DataType value) const { return std::string(ToText(value)); }

    std::string operator()(const std::vector<GraphArgument>& elements) const {
      return Concat("[", Join(elements, ", ", ArgumentText), "]");
    }
  };

  return std::visit(Visitor{}, argument.value);
}

std::string_view RoleOf(const GraphInput& input) {
  return input.kind == GraphInput::Kind::kUserInput ? "input" : "weight";
}

}  // namespace

std::string ListCall(const GraphNode& node) {
  return Concat(node.op, "(", Join(node.arguments, ", ", ArgumentText), ")");
}

std::string ListGraph(const Graph& graph) {
  const std::vector<std::string_view> source = Split(graph.source, '\n');
  std::string text;
  for (const GraphInput& input : graph.inputs) {
    Append(text, RoleOf(input), " ", input.name, " : ", ToText(input.type));
    if (!input.target.empty()) Append(text, "  # ", input.target);
    text += '\n';
  }
  int shown_line = 0;
  for (const GraphNode& node : graph.nodes) {
    const std::string types =
        Join(node.result_types, ", ", [](const TensorType& type) { return ToText(type); });
    Append(text, Join(node.results, ", "), " = ", ListCall(node), " : ", types);
    if (node.line > 0) {
      Append(text, "  # line ", node.line);
      if (node.line != shown_line && static_cast<size_t>(node.line) <= source.size()) {
        Append(text, ": ", Trim(source[static_cast<size_t>(node.line) - 1]));
      }
      shown_line = node.line;
    }
    text += '\n';
  }
  for (const GraphOutput& output : graph.outputs) {
    Append(text, "output ", output.name, " = ", output.value, " : ", ToText(output.type));
    if (!output.target.empty()) Append(text, "  # new content of ", output.target);
    text += '\n';
  }
  return text;
}

}  // namespace mtmc::kernel
