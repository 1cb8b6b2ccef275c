// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/task.h"

#include <algorithm>
#include <map>
#include <variant>

#include "kernel/graph/tensor_type.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// Prints nodes with their values numbered in order of definition.
class TaskText {
 public:
  explicit TaskText(const ScheduleContext& context) : context_(context) {}

  std::string Print(const std::vector<std::string>& nodes) {
    std::string text;
    for (const std::string& name : nodes) {
      const int position = context_.index.PositionOf(name);
      const GraphNode& node = context_.graph.nodes[static_cast<size_t>(position)];
      text += Call(node);
      for (size_t r = 0; r < node.results.size(); ++r) {
        text += Concat(" ", ToText(node.result_types[r]));
        // Who else needs the value decides whether a kernel must store it.
        if (IsReadOutside(node.results[r], nodes)) text += "!";
        number_.emplace(node.results[r], number_.size());
      }
      text += "\n";
    }
    return text;
  }

 private:
  std::string Call(const GraphNode& node) const {
    std::string text = Concat(node.op, "(");
    for (const GraphArgument& argument : node.arguments) {
      text += Concat(argument.name, "=", Argument(argument), ",");
    }
    return text + ")";
  }

  std::string Argument(const GraphArgument& argument) const {
    return std::visit([this](const auto& value) { return Print(value); }, argument.value);
  }

  std::string Print(const NoneArgument&) const { return "none"; }

  std::string Print(const ValueArgument& value) const { return Value(value.name); }

  std::string Print(int64_t value) const { return std::to_string(value); }

  std::string Print(double value) const { return RealText(value); }

  std::string Print(bool value) const { return value ? "true" : "false"; }

  std::string Print(const std::string& value) const { return Quoted(value); }

  std::string Print(DataType value) const { return std::string(ToText(value)); }

  std::string Print(const std::vector<GraphArgument>& list) const {
    std::string text = "[";
    for (const GraphArgument& element : list) text += Concat(Argument(element), ",");
    return text + "]";
  }

  std::string Value(const std::string& name) const {
    const auto found = number_.find(name);
    if (found != number_.end()) return Concat("%", found->second);
    const GraphNode* producer = context_.graph.FindProducer(name);
    // A free node is part of whoever reads through it.
    if (producer != nullptr && context_.index.IsFree(producer->name)) return Call(*producer);
    const TensorType* type = context_.graph.FindType(name);
    return type == nullptr ? "?" : ToText(*type);
  }

  bool IsReadOutside(const std::string& value, const std::vector<std::string>& nodes) const {
    if (context_.index.IsOutput(value)) return true;
    const std::vector<std::string>& readers = context_.index.ReadersOf(value);
    return std::any_of(readers.begin(), readers.end(), [&nodes](const std::string& reader) {
      return std::find(nodes.begin(), nodes.end(), reader) == nodes.end();
    });
  }

  const ScheduleContext& context_;
  std::map<std::string, size_t, std::less<>> number_;
};

}  // namespace

std::string TaskOf(const ScheduleContext& context, const std::vector<std::string>& nodes) {
  return TaskText(context).Print(nodes);
}

}  // namespace mtmc::kernel
