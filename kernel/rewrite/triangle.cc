// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernel/rewrite/edit_builder.h"
#include "kernel/rewrite/node_arguments.h"
#include "kernel/rewrite/product_node.h"
#include "kernel/rewrite/rules.h"

namespace mtmc::kernel {
namespace {

// Five eighths of a square product are left of four blocks; more blocks leave little less, and
// each is a product of its own.
constexpr int64_t kBlocks = 4;
// Smaller products take as long as their launches.
constexpr int64_t kLeastRows = 256;

// The columns of a block of rows that a triangle keeps.
struct Columns {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t count() const { return std::max<int64_t>(end - begin, 0); }
};

}  // namespace

std::optional<GraphEdit> FindTriangle(const GraphUses& uses, const GraphNode& node) {
  const std::string_view op = OperatorOf(node);
  if (op != "triu" && op != "tril") return std::nullopt;
  const auto self = FindTensor(node, "self");
  const GraphNode* inner = self ? uses.ProducerOf(*self) : nullptr;
  if (inner == nullptr || !uses.HasOneReader(*self)) return std::nullopt;
  const std::optional<ProductNode> product = FindProduct(uses, *inner);
  if (!product) return std::nullopt;
  const std::vector<int64_t>& shape = uses.TypeOf(*self).shape;
  const int row_axis = static_cast<int>(shape.size()) - 2;
  const int64_t rows = shape.at(shape.size() - 2);
  const int64_t columns = shape.back();
  if (rows < kLeastRows) return std::nullopt;
  const int64_t diagonal = std::clamp(FindInt(node, "diagonal").value_or(0), -rows, columns);
  const auto columns_of = [&](int64_t first, int64_t last) {
    if (op == "triu") return Columns{std::clamp<int64_t>(first + diagonal, 0, columns), columns};
    return Columns{0, std::clamp<int64_t>(last + diagonal, 0, columns)};
  };
  EditBuilder builder(uses, node);
  builder.SetOrigin(*inner);
  std::vector<std::string> blocks;
  double left = 0;
  for (int64_t b = 0; b < kBlocks; ++b) {
    const int64_t first = rows * b / kBlocks;
    const int64_t count = rows * (b + 1) / kBlocks - first;
    const Columns kept = columns_of(first, first + count);
    left += static_cast<double>(count * kept.count());
    // Zeros alone have no product.
    if (kept.count() == 0) return std::nullopt;
    const std::string block = builder.MatrixProduct(
        builder.Slice(product->left, row_axis, first, count),
        builder.Slice(product->right, row_axis + 1, kept.begin, kept.count()));
    blocks.push_back(builder.Pad(block, row_axis + 1, kept.begin, columns - kept.end));
  }
  if (left > kMostLeft * static_cast<double>(rows * columns)) return std::nullopt;
  const std::string whole = builder.Concatenate(blocks, row_axis);
  return builder.Finish(builder.AddLike(node, {{*self, whole}}, shape));
}

}  // namespace mtmc::kernel
