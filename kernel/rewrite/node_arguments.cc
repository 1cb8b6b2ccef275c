// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/node_arguments.h"

#include <algorithm>
#include <numeric>

#include "kernel/graph/operators.h"

namespace mtmc::kernel {
namespace {

// Null for None as well.
const GraphArgument* FindGiven(const GraphNode& node, std::string_view name) {
  const GraphArgument* argument = node.FindArgument(name);
  if (argument == nullptr || std::holds_alternative<NoneArgument>(argument->value)) return nullptr;
  return argument;
}

// Absent where an element is no whole number.
std::optional<std::vector<int64_t>> WholeNumbers(const GraphArgument& argument) {
  if (const auto* one = std::get_if<int64_t>(&argument.value)) return std::vector<int64_t>{*one};
  const auto* list = std::get_if<std::vector<GraphArgument>>(&argument.value);
  if (list == nullptr) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const GraphArgument& element : *list) {
    const auto* number = std::get_if<int64_t>(&element.value);
    if (number == nullptr) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<int> AxisOf(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  return static_cast<int>(axis);
}

}  // namespace

std::string_view OperatorOf(const GraphNode& node) {
  std::string_view name = WithoutOverload(node.op);
  const size_t colons = name.find("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

bool HasArgument(const GraphNode& node, std::string_view name) {
  return FindGiven(node, name) != nullptr;
}

std::optional<std::string> FindTensor(const GraphNode& node, std::string_view name) {
  const GraphArgument* argument = FindGiven(node, name);
  const auto* value = argument ? std::get_if<ValueArgument>(&argument->value) : nullptr;
  return value ? std::optional(value->name) : std::nullopt;
}

std::optional<double> FindNumber(const GraphNode& node, std::string_view name) {
  const GraphArgument* argument = FindGiven(node, name);
  if (argument == nullptr) return std::nullopt;
  if (const auto* whole = std::get_if<int64_t>(&argument->value)) {
    return static_cast<double>(*whole);
  }
  const auto* real = std::get_if<double>(&argument->value);
  return real ? std::optional(*real) : std::nullopt;
}

std::optional<int64_t> FindInt(const GraphNode& node, std::string_view name) {
  const GraphArgument* argument = FindGiven(node, name);
  const auto* whole = argument ? std::get_if<int64_t>(&argument->value) : nullptr;
  return whole ? std::optional(*whole) : std::nullopt;
}

bool IsTrue(const GraphNode& node, std::string_view name) {
  const GraphArgument* argument = FindGiven(node, name);
  const auto* flag = argument ? std::get_if<bool>(&argument->value) : nullptr;
  return flag != nullptr && *flag;
}

std::optional<std::vector<int64_t>> FindInts(const GraphNode& node, std::string_view name,
                                             size_t count, int64_t otherwise) {
  const GraphArgument* argument = FindGiven(node, name);
  if (argument == nullptr) return std::vector<int64_t>(count, otherwise);
  std::optional<std::vector<int64_t>> numbers = WholeNumbers(*argument);
  if (!numbers) return std::nullopt;
  if (numbers->empty()) return std::vector<int64_t>(count, otherwise);
  if (numbers->size() == 1) numbers->resize(count, numbers->front());
  return numbers->size() == count ? numbers : std::nullopt;
}

std::optional<std::vector<int>> FindAxes(const GraphNode& node, std::string_view name, int rank) {
  const GraphArgument* argument = FindGiven(node, name);
  std::vector<int> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (argument == nullptr) return axes;
  const std::optional<std::vector<int64_t>> numbers = WholeNumbers(*argument);
  if (!numbers) return std::nullopt;
  if (numbers->empty()) return axes;
  axes.clear();
  for (const int64_t number : *numbers) {
    const std::optional<int> axis = AxisOf(number, rank);
    if (!axis) return std::nullopt;
    axes.push_back(*axis);
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return std::nullopt;
  return axes;
}

std::optional<int> FindAxis(const GraphNode& node, std::string_view name, int rank) {
  const std::optional<int64_t> axis = FindInt(node, name);
  return axis ? AxisOf(*axis, rank) : std::nullopt;
}

}  // namespace mtmc::kernel
