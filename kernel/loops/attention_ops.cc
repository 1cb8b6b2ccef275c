// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "kernel/loops/op_table.h"
#include "kernel/loops/softmax.h"

namespace mtmc::kernel {
namespace {

using Operands = std::vector<ScalarPtr>;
using Indices = std::vector<ScalarPtr>;

Elements Input(const NodeLowering& node, const char* name) {
  return CastTo(node.Tensor(name), ComputeType(node.result_type().data_type));
}

// Scaled scores with what must not be seen at minus infinity.
Elements Masked(const NodeLowering& node, const Elements& scores, double scale) {
  const DataType type = scores.type.data_type;
  const ScalarPtr hidden = Literal(-std::numeric_limits<double>::infinity(), type);
  Elements masked =
      MapElements({scores}, [=](const Operands& v) { return Mul(v[0], Literal(scale, type)); });
  if (node.Bool("is_causal", false)) {
    masked = {scores.type, [=](const Indices& indices) {
                const ScalarPtr is_seen =
                    LessEqual(indices.at(indices.size() - 1), indices.at(indices.size() - 2));
                return Select(is_seen, masked.at(indices), hidden);
              }};
  }
  if (const auto mask = node.FindTensor("attn_mask")) {
    if (mask->type.data_type == DataType::kBool) {
      return MapElements({*mask, masked},
                         [=](const Operands& v) { return Select(v[0], v[1], hidden); });
    }
    return MapElements({masked, CastTo(*mask, type)},
                       [](const Operands& v) { return Add(v[0], v[1]); });
  }
  return masked;
}

// softmax(scale * q k^T + mask) v over the last two dimensions, as two
// contractions with a softmax between.
bool LowerAttention(NodeLowering& node) {
  if (node.Double("dropout_p", 0) != 0 || node.Bool("enable_gqa", false)) return false;
  const Elements query = Input(node, "query");
  const Elements key = Input(node, "key");
  const Elements value = Input(node, "value");
  const size_t rank = query.type.shape.size();
  if (rank < 2) return false;
  const std::vector<int64_t> batch(query.type.shape.begin(), query.type.shape.end() - 2);
  for (const Elements* other : {&key, &value}) {
    if (other->type.shape.size() != rank ||
        !std::equal(batch.begin(), batch.end(), other->type.shape.begin())) {
      return false;
    }
  }
  const DataType type = query.type.data_type;
  const int64_t width = query.type.shape.back();
  const double scale = node.Double("scale", 1 / std::sqrt(static_cast<double>(width)));

  // Axes of the scores: batch, query position, key position; then the width.
  TensorType score_type = query.type;
  score_type.shape.back() = key.type.shape.at(rank - 2);
  const Indices axes = Axes(static_cast<int>(rank) + 1);
  const auto at = [&](const ScalarPtr& row, const ScalarPtr& column) {
    Indices indices(axes.begin(), axes.begin() + static_cast<int64_t>(rank) - 2);
    indices.push_back(row);
    indices.push_back(column);
    return indices;
  };
  const Elements scores =
      node.Contract(score_type, {width}, query.at(at(axes.at(rank - 2), axes.at(rank))),
                    key.at(at(axes.at(rank - 1), axes.at(rank))), node.NameOf("scores"));
  const Elements weights =
      node.Materialize(SoftmaxOf(node, Masked(node, scores, scale), static_cast<int>(rank) - 1),
                       node.NameOf("weights"));
  const TensorType result{type, node.result_type().shape};
  const bool is_result = type == node.result_type().data_type;
  const Elements mixed = node.Contract(result, {score_type.shape.back()},
                                       weights.at(at(axes.at(rank - 2), axes.at(rank))),
                                       value.at(at(axes.at(rank), axes.at(rank - 1))),
                                       is_result ? node.result() : node.NameOf("mixed"));
  if (!is_result) node.Define(mixed);
  return true;
}

}  // namespace

void AddAttentionOps(OpTable& table) { table["scaled_dot_product_attention"] = LowerAttention; }

}  // namespace mtmc::kernel
