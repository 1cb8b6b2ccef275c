// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <vector>

#include "kernel/loops/elements.h"
#include "kernel/rewrite/edit_builder.h"
#include "kernel/rewrite/node_arguments.h"
#include "kernel/rewrite/product_node.h"
#include "kernel/rewrite/rules.h"

namespace mtmc::kernel {
namespace {

// The product that makes a value nobody else reads.
std::optional<ProductNode> FindInner(const GraphUses& uses, const std::string& value) {
  const GraphNode* node = uses.ProducerOf(value);
  if (node == nullptr || !uses.HasOneReader(value)) return std::nullopt;
  return FindProduct(uses, *node);
}

struct Extents {
  double rows = 0;
  double depth = 0;
  double columns = 0;

  double products() const { return rows * depth * columns; }
};

Extents ExtentsOf(const GraphUses& uses, const ProductNode& product) {
  const std::vector<int64_t>& a = uses.TypeOf(product.left).shape;
  const std::vector<int64_t>& b = uses.TypeOf(product.right).shape;
  return {static_cast<double>(a.at(a.size() - 2)), static_cast<double>(a.back()),
          static_cast<double>(b.back())};
}

// x W1^T W2^T = x (W2 W1)^T, with biases.
std::optional<GraphEdit> FindLinears(const GraphUses& uses, const GraphNode& node) {
  const auto middle = FindTensor(node, "input");
  const auto second = FindTensor(node, "weight");
  if (!middle || !second || !uses.HasOneReader(*middle)) return std::nullopt;
  const GraphNode* inner = uses.ProducerOf(*middle);
  if (inner == nullptr || OperatorOf(*inner) != "linear") return std::nullopt;
  const auto input = FindTensor(*inner, "input");
  const auto first = FindTensor(*inner, "weight");
  if (!input || !first) return std::nullopt;
  const std::vector<int64_t>& w1 = uses.TypeOf(*first).shape;
  const std::vector<int64_t>& w2 = uses.TypeOf(*second).shape;
  Require(w1.size() == 2 && w2.size() == 2 && w2.at(1) == w1.at(0));
  Require(uses.TypeOf(*input).shape.back() == w1.at(1) && w1.at(1) > 0);
  const int64_t num_rows = uses.TypeOf(*input).elements() / w1.at(1);
  const auto rows = static_cast<double>(num_rows);
  const auto in = static_cast<double>(w1.at(1));
  const auto out = static_cast<double>(w2.at(0));
  const auto between = static_cast<double>(w1.at(0));
  const double before = rows * between * (in + out);
  if (in * out * (rows + between) > kMostLeft * before) return std::nullopt;
  EditBuilder builder(uses, node);
  const std::string weight = builder.MatrixProduct(*second, *first);
  std::string bias = FindTensor(node, "bias").value_or("");
  if (const auto inner_bias = FindTensor(*inner, "bias")) {
    const std::string row = builder.Reshape(*inner_bias, {1, w1.at(0)});
    bias = builder.Reshape(builder.Linear(row, *second, bias), {w2.at(0)});
  }
  return builder.Finish(builder.Linear(*input, weight, bias));
}

}  // namespace

std::optional<GraphEdit> FindReassociation(const GraphUses& uses, const GraphNode& node) {
  if (OperatorOf(node) == "linear") return FindLinears(uses, node);
  const std::optional<ProductNode> outer = FindProduct(uses, node);
  if (!outer) return std::nullopt;
  const Extents whole = ExtentsOf(uses, *outer);
  EditBuilder builder(uses, node);
  // (a b) c = a (b c)
  if (const std::optional<ProductNode> inner = FindInner(uses, outer->left)) {
    const Extents first = ExtentsOf(uses, *inner);
    const double after = first.depth * whole.columns * (first.columns + whole.rows);
    if (after <= kMostLeft * (first.products() + whole.products())) {
      return builder.Finish(
          builder.MatrixProduct(inner->left, builder.MatrixProduct(inner->right, outer->right)));
    }
  }
  // a (b c) = (a b) c
  if (const std::optional<ProductNode> inner = FindInner(uses, outer->right)) {
    const Extents second = ExtentsOf(uses, *inner);
    const double after = whole.rows * second.depth * (second.rows + second.columns);
    if (after <= kMostLeft * (second.products() + whole.products())) {
      return builder.Finish(
          builder.MatrixProduct(builder.MatrixProduct(outer->left, inner->left), inner->right));
    }
  }
  return std::nullopt;
}

}  // namespace mtmc::kernel
