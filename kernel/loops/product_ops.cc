// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

using Operands = std::vector<ScalarPtr>;

Elements Factor(const NodeLowering& node, const char* name) {
  return CastTo(node.Tensor(name), ComputeType(node.result_type().data_type));
}

// The contraction's own type: that of the result, f32 for the 16-bit ones.
TensorType ProductType(const NodeLowering& node) {
  return {ComputeType(node.result_type().data_type), node.result_type().shape};
}

// Where the result is the product itself the contraction takes its name.
Elements NamedContraction(NodeLowering& node, int64_t depth, const ScalarPtr& lhs,
                          const ScalarPtr& rhs, bool is_final) {
  const TensorType type = ProductType(node);
  const bool is_result = is_final && type == node.result_type();
  const Elements product =
      node.Contract(type, {depth}, lhs, rhs, is_result ? node.result() : node.NameOf("product"));
  if (is_final && !is_result) node.Define(product);
  return product;
}

// Product of [..., M, K] and [..., K, N] with broadcast leading dimensions; a
// vector on either side loses its own dimension in the result.
Elements MatrixProduct(NodeLowering& node, const Elements& a, const Elements& b, bool is_final) {
  Require(a.rank() >= 1 && b.rank() >= 1);
  const bool has_rows = a.rank() > 1;
  const bool has_columns = b.rank() > 1;
  const int rank = static_cast<int>(node.result_type().shape.size());
  const std::vector<ScalarPtr> axes = Axes(rank + 1);
  const int batch_rank = rank - (has_rows ? 1 : 0) - (has_columns ? 1 : 0);
  Require(batch_rank >= 0);
  const ScalarPtr& k = axes.back();
  // Leading indices of an operand, aligned right against the result's.
  const auto leading = [&](const Elements& operand) {
    const int own = operand.rank() - 2;
    std::vector<ScalarPtr> indices;
    for (int i = 0; i < own; ++i) {
      const bool is_broadcast = operand.type.shape.at(static_cast<size_t>(i)) == 1;
      indices.push_back(is_broadcast ? Index(0)
                                     : axes.at(static_cast<size_t>(batch_rank - own + i)));
    }
    return indices;
  };
  std::vector<ScalarPtr> left = leading(a);
  if (has_rows) left.push_back(axes.at(static_cast<size_t>(batch_rank)));
  left.push_back(k);
  std::vector<ScalarPtr> right = leading(b);
  right.push_back(k);
  if (has_columns) right.push_back(axes.at(static_cast<size_t>(rank - 1)));
  return NamedContraction(node, a.type.shape.back(), a.at(left), b.at(right), is_final);
}

LowerNode Product(const char* left, const char* right) {
  return [=](NodeLowering& node) {
    MatrixProduct(node, Factor(node, left), Factor(node, right), /*is_final=*/true);
    return true;
  };
}

// beta * self + alpha * (left @ right).
LowerNode AddedProduct(const char* left, const char* right) {
  return [=](NodeLowering& node) {
    const Elements product =
        MatrixProduct(node, Factor(node, left), Factor(node, right), /*is_final=*/false);
    const double alpha = node.Double("alpha", 1);
    const double beta = node.Double("beta", 1);
    node.Define(MapElements({Factor(node, "self"), product}, [=](const Operands& v) {
      const ScalarPtr scaled = Mul(v[1], Literal(alpha, v[1]->type));
      // A zero beta ignores self, NaN included.
      return beta == 0 ? scaled : Add(Mul(v[0], Literal(beta, v[0]->type)), scaled);
    }));
    return true;
  };
}

bool LowerLinear(NodeLowering& node) {
  const Elements input = Factor(node, "input");
  const Elements weight = Factor(node, "weight");
  if (weight.rank() != 2) return false;
  const int rank = input.rank();
  const std::vector<ScalarPtr> axes = Axes(rank + 1);
  std::vector<ScalarPtr> left = Part(axes, 0, rank - 1);
  left.push_back(axes.back());
  const bool has_bias = node.Has("bias");
  const Elements product = NamedContraction(
      node, weight.type.shape.at(1), input.at(left),
      weight.at({axes.at(static_cast<size_t>(rank - 1)), axes.back()}), /*is_final=*/!has_bias);
  if (has_bias) {
    node.Define(MapElements({product, Factor(node, "bias")},
                            [](const Operands& v) { return Add(v[0], v[1]); }));
  }
  return true;
}

bool LowerOuter(NodeLowering& node) {
  const Elements self = Factor(node, "self");
  const Elements other = Factor(node, node.Has("vec2") ? "vec2" : "other");
  node.Define({node.result_type(), [=](const std::vector<ScalarPtr>& indices) {
                 return Mul(self.at({indices.at(0)}), other.at({indices.at(1)}));
               }});
  return true;
}

// Subscripts of each operand and of the result, without blanks. Empty where the
// equation has an ellipsis or no arrow, which have no form here.
struct Subscripts {
  std::vector<std::string> operands;
  std::string result;
};

std::optional<Subscripts> ParseEquation(std::string_view equation) {
  Subscripts subscripts;
  std::string current;
  bool has_arrow = false;
  for (const char c : equation) {
    if (c == ' ') continue;
    if (c == '.') return std::nullopt;
    if (c == '-') has_arrow = true;
    if (c == ',' || c == '-') {
      subscripts.operands.push_back(current);
      current.clear();
    } else if (c != '>') {
      current += c;
    }
  }
  if (!has_arrow) return std::nullopt;
  subscripts.result = current;
  return subscripts;
}

bool LowerEinsum(NodeLowering& node) {
  const std::optional<Subscripts> subscripts = ParseEquation(node.FindText("equation"));
  const std::vector<Elements> tensors = node.Tensors("tensors");
  if (!subscripts || tensors.size() != subscripts->operands.size() || tensors.size() > 2 ||
      tensors.empty()) {
    return false;
  }
  // Axis and extent of each letter: the result's first, then the summed ones.
  std::map<char, int> axis;
  std::vector<int64_t> summed;
  for (const char letter : subscripts->result) axis.emplace(letter, static_cast<int>(axis.size()));
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t d = 0; d < subscripts->operands.at(i).size(); ++d) {
      if (!axis.emplace(subscripts->operands.at(i)[d], static_cast<int>(axis.size())).second)
        continue;
      summed.push_back(tensors.at(i).type.shape.at(d));
    }
  }
  const TensorType type = ProductType(node);
  std::vector<ScalarPtr> factors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<ScalarPtr> indices;
    for (const char letter : subscripts->operands.at(i)) indices.push_back(Axis(axis.at(letter)));
    factors.push_back(Cast(tensors.at(i).at(indices), type.data_type));
  }
  const ScalarPtr one = Literal(1, type.data_type);
  if (summed.empty()) {
    const ScalarPtr product = tensors.size() == 2 ? Mul(factors[0], factors[1]) : factors[0];
    node.Define({type, [product](const std::vector<ScalarPtr>& indices) {
                   return SubstituteAxes(product, indices);
                 }});
    return true;
  }
  if (tensors.size() == 2) {
    const bool is_result = type == node.result_type();
    const Elements product = node.Contract(type, summed, factors[0], factors[1],
                                           is_result ? node.result() : node.NameOf("product"));
    if (!is_result) node.Define(product);
    return true;
  }
  node.Define(node.ReduceWindow(type, summed,
                                [&](const std::vector<ScalarPtr>&) { return factors[0]; },
                                {.combiner = Combiner::kSum, .name = node.NameOf("total")}));
  return true;
}

}  // namespace

void AddProductOps(OpTable& table) {
  table["mm"] = Product("self", "mat2");
  table["bmm"] = Product("self", "mat2");
  table["mv"] = Product("self", "vec");
  table["dot"] = Product("self", "tensor");
  table["matmul"] = Product("self", "other");
  table["addmm"] = AddedProduct("mat1", "mat2");
  table["baddbmm"] = AddedProduct("batch1", "batch2");
  table["addmv"] = AddedProduct("mat", "vec");
  table["linear"] = LowerLinear;
  table["outer"] = LowerOuter;
  table["einsum"] = LowerEinsum;
}

}  // namespace mtmc::kernel
