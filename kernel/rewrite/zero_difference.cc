// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/edit_builder.h"
#include "kernel/rewrite/node_arguments.h"
#include "kernel/rewrite/rules.h"

namespace mtmc::kernel {

std::optional<GraphEdit> FindZeroDifference(const GraphUses& uses, const GraphNode& node) {
  if (OperatorOf(node) != "sub") return std::nullopt;
  const auto self = FindTensor(node, "self");
  if (!self || self != FindTensor(node, "other")) return std::nullopt;
  if (FindNumber(node, "alpha").value_or(1) != 1 || !uses.IsRead(node.results.at(0))) {
    return std::nullopt;
  }
  EditBuilder builder(uses, node);
  const TensorType& type = node.result_types.at(0);
  return builder.Finish(builder.Fill(type.shape, 0, type.data_type));
}

}  // namespace mtmc::kernel
