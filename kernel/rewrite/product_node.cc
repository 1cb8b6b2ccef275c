// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/product_node.h"

#include <vector>

#include "kernel/rewrite/node_arguments.h"

namespace mtmc::kernel {

std::optional<ProductNode> FindFactors(const GraphNode& node) {
  const std::string_view op = OperatorOf(node);
  if (op != "matmul" && op != "mm" && op != "bmm" && op != "addmm") return std::nullopt;
  const auto left = FindTensor(node, op == "addmm" ? "mat1" : "self");
  const auto right = FindTensor(node, op == "matmul" ? "other" : "mat2");
  if (!left || !right) return std::nullopt;
  return ProductNode{*left, *right};
}

std::optional<ProductNode> FindProduct(const GraphUses& uses, const GraphNode& node) {
  std::optional<ProductNode> found = FindFactors(node);
  if (!found || OperatorOf(node) == "addmm") return std::nullopt;
  const std::vector<int64_t>& a = uses.TypeOf(found->left).shape;
  const std::vector<int64_t>& b = uses.TypeOf(found->right).shape;
  if (a.size() < 2 || a.size() != b.size() || a.back() != b.at(b.size() - 2)) return std::nullopt;
  for (size_t d = 0; d + 2 < a.size(); ++d) {
    if (a.at(d) != b.at(d)) return std::nullopt;
  }
  return found;
}

}  // namespace mtmc::kernel
