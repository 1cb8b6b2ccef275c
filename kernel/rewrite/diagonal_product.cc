// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "kernel/rewrite/edit_builder.h"
#include "kernel/rewrite/node_arguments.h"
#include "kernel/rewrite/product_node.h"
#include "kernel/rewrite/rules.h"

namespace mtmc::kernel {
namespace {

// The diagonal that a square matrix is made from; absent where it is made otherwise.
std::optional<std::string> FindDiagonal(const GraphUses& uses, const std::string& matrix) {
  const GraphNode* node = uses.ProducerOf(matrix);
  if (node == nullptr) return std::nullopt;
  const std::string_view op = OperatorOf(*node);
  if (op != "diag" && op != "diag_embed") return std::nullopt;
  std::optional<std::string> self = FindTensor(*node, "self");
  // `diag` of a matrix takes its diagonal instead.
  if (!self || uses.TypeOf(*self).shape.size() != 1) return std::nullopt;
  for (const char* name : {"diagonal", "offset"}) {
    if (FindInt(*node, name).value_or(0) != 0) return std::nullopt;
  }
  return self;
}

}  // namespace

std::optional<GraphEdit> FindDiagonalProduct(const GraphUses& uses, const GraphNode& node) {
  const std::string_view op = OperatorOf(node);
  if (op != "matmul" && op != "mm") return std::nullopt;
  const std::optional<ProductNode> product = FindFactors(node);
  if (!product || node.result_types.at(0).shape.size() < 2) return std::nullopt;
  const auto& [left, right] = *product;
  EditBuilder builder(uses, node);
  const std::optional<std::string> rows = FindDiagonal(uses, left);
  if (rows && uses.TypeOf(right).shape.size() >= 2) {
    const int64_t extent = uses.TypeOf(*rows).shape.at(0);
    return builder.Finish(builder.Multiply(right, builder.Reshape(*rows, {extent, 1})));
  }
  const std::optional<std::string> columns = FindDiagonal(uses, right);
  if (columns && uses.TypeOf(left).shape.size() >= 2) {
    return builder.Finish(builder.Multiply(left, *columns));
  }
  return std::nullopt;
}

}  // namespace mtmc::kernel
