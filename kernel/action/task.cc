// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/task.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "common/base/status_macros.h"
#include "kernel/graph/tensor_type.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// Prints nodes with their values numbered in order of definition.
class TaskText {
 public:
  TaskText(const Graph& graph, const NestIndex& index) : graph_(graph), index_(index) {}

  std::string Print(const std::vector<std::string>& nodes) {
    std::string text;
    for (const std::string& name : nodes) {
      const int position = index_.PositionOf(name);
      const GraphNode& node = graph_.nodes[static_cast<size_t>(position)];
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
    const GraphNode* producer = graph_.FindProducer(name);
    // A free node is part of whoever reads through it.
    if (producer != nullptr && index_.IsFree(producer->name)) return Call(*producer);
    const TensorType* type = graph_.FindType(name);
    return type == nullptr ? "?" : ToText(*type);
  }

  bool IsReadOutside(const std::string& value, const std::vector<std::string>& nodes) const {
    if (index_.IsOutput(value)) return true;
    const std::vector<std::string>& readers = index_.ReadersOf(value);
    return std::any_of(readers.begin(), readers.end(), [&nodes](const std::string& reader) {
      return std::find(nodes.begin(), nodes.end(), reader) == nodes.end();
    });
  }

  const Graph& graph_;
  const NestIndex& index_;
  std::map<std::string, size_t, std::less<>> number_;
};

}  // namespace

std::string TaskOf(const ScheduleContext& context, const std::vector<std::string>& nodes) {
  return TaskText(context.graph, context.index).Print(nodes);
}

absl::StatusOr<std::unique_ptr<const TaskReader>> TaskReader::Create(const Graph& graph) {
  MTMC_ASSIGN_OR_RETURN(LoopNest nest, LowerToLoops(graph));
  return std::unique_ptr<const TaskReader>(new TaskReader(graph, std::move(nest)));
}

TaskReader::TaskReader(const Graph& graph, LoopNest nest)
    : graph_(graph), nest_(std::move(nest)), index_(graph, nest_) {}

std::string TaskReader::Read(std::vector<std::string>& nodes) const {
  const auto position = [this](const std::string& node) { return index_.PositionOf(node); };
  if (std::any_of(nodes.begin(), nodes.end(),
                  [&](const std::string& node) { return position(node) < 0; })) {
    return "";
  }
  std::sort(nodes.begin(), nodes.end(),
            [&](const std::string& a, const std::string& b) { return position(a) < position(b); });
  return TaskText(graph_, index_).Print(nodes);
}

}  // namespace mtmc::kernel
