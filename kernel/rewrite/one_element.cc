// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include "kernel/rewrite/edit_builder.h"
#include "kernel/rewrite/node_arguments.h"
#include "kernel/rewrite/rules.h"

namespace mtmc::kernel {
namespace {

// What the operator gives for axes of one element.
enum class Result { kUnknown, kElement, kOne, kZero };

struct Row {
  std::string_view op;
  Result result;
};

constexpr auto kRows = std::to_array<Row>({
    {"amax", Result::kElement},
    {"amin", Result::kElement},
    {"cumprod", Result::kElement},
    {"cumsum", Result::kElement},
    {"log_softmax", Result::kZero},
    {"logsumexp", Result::kElement},
    {"max", Result::kElement},
    {"mean", Result::kElement},
    {"min", Result::kElement},
    {"prod", Result::kElement},
    {"softmax", Result::kOne},
    {"sum", Result::kElement},
});

Result ResultOf(const GraphNode& node) {
  std::string_view op = OperatorOf(node);
  if (op.starts_with('_')) op.remove_prefix(1);
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [op](const Row& known) { return known.op == op; });
  return row == kRows.end() ? Result::kUnknown : row->result;
}

}  // namespace

std::optional<GraphEdit> FindOneElement(const GraphUses& uses, const GraphNode& node) {
  const Result result = ResultOf(node);
  const auto self = FindTensor(node, "self");
  if (result == Result::kUnknown || !self || node.results.empty()) return std::nullopt;
  // `max(a, b)` is no reduction.
  if (HasArgument(node, "other") || !uses.IsRead(node.results.at(0))) return std::nullopt;
  // Where the largest is.
  if (node.results.size() > 1 && uses.IsRead(node.results.at(1))) return std::nullopt;
  const TensorType& type = uses.TypeOf(*self);
  if (!IsFloating(type.data_type) || type.data_type != node.result_types.at(0).data_type) {
    return std::nullopt;
  }
  const auto axes = FindAxes(node, "dim", static_cast<int>(type.shape.size()));
  if (!axes || type.elements() != node.result_types.at(0).elements()) return std::nullopt;
  const bool has_one = std::all_of(axes->begin(), axes->end(), [&type](int axis) {
    return type.shape.at(static_cast<size_t>(axis)) == 1;
  });
  if (!has_one) return std::nullopt;
  EditBuilder builder(uses, node);
  if (result == Result::kElement) return builder.Finish(*self);
  const double value = result == Result::kOne ? 1 : 0;
  return builder.Finish(builder.Fill(node.result_types.at(0).shape, value, type.data_type));
}

}  // namespace mtmc::kernel
