// SPDX-License-Identifier: Apache-2.0
#include "kernel/rewrite/reduce_first.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernel/graph/text.h"
#include "kernel/loops/elements.h"
#include "kernel/rewrite/node_arguments.h"
#include "kernel/rewrite/product_node.h"
#include "kernel/rewrite/rules.h"

namespace mtmc::kernel {
namespace {

// The pooling as an operand meets it that is broadcast to the pooled shape; what it does along
// axes that the operand has not is left out.
Pooling ForOperand(const Pooling& pooling, const std::vector<int64_t>& shape) {
  Pooling own = Pooling::Plain(shape, pooling.is_mean);
  const size_t missing = pooling.axes.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape.at(d) != 1) own.axes.at(d) = pooling.axes.at(missing + d);
  }
  return own;
}

// What a sum along the axes that the operand has not multiplies it with.
double GainBeside(const Pooling& pooling, const Pooling& own) {
  return pooling.gain() / own.gain();
}

std::vector<int64_t> ShapeOf(const Pooling& pooling) {
  std::vector<int64_t> shape;
  for (const Pooling::Axis& axis : pooling.axes) shape.push_back(axis.outputs);
  return shape;
}

// One that pools a single axis as another does.
Pooling Along(const std::vector<int64_t>& shape, size_t axis, const Pooling& pooling,
              size_t pooled_axis) {
  Pooling own = Pooling::Plain(shape, pooling.is_mean);
  own.axes.at(axis) = pooling.axes.at(pooled_axis);
  return own;
}

std::string KeyOf(const std::string& value, const Pooling& pooling) {
  std::string key = Concat(value, pooling.is_mean ? " mean" : " sum");
  for (const Pooling::Axis& axis : pooling.axes) {
    Append(key, " ", axis.window, "/", axis.step, "/", axis.outputs);
  }
  return key;
}

bool IsOne(const GraphNode& node, std::string_view name) {
  return FindNumber(node, name).value_or(1) == 1;
}

}  // namespace

std::string PoolingMover::Move(const std::string& value, const Pooling& pooling) {
  Require(pooling.Fits(uses_.TypeOf(value).shape));
  if (pooling.is_plain()) return value;
  const std::string key = KeyOf(value, pooling);
  if (const auto known = moved_.find(key); known != moved_.end()) return known->second;
  const GraphNode* node = uses_.ProducerOf(value);
  std::optional<std::string> result;
  // Whoever else reads the value needs it as it is.
  if (node != nullptr && node->results.size() == 1 && uses_.HasOneReader(value)) {
    result = MovePast(*node, pooling);
  }
  if (!result) result = Pool(builder_, value, pooling);
  return moved_[key] = *std::move(result);
}

std::optional<std::string> PoolingMover::MovePast(const GraphNode& node, const Pooling& pooling) {
  using Step = std::optional<std::string> (PoolingMover::*)(const GraphNode&, const Pooling&);
  static const auto* const kSteps = new std::map<std::string_view, Step>{
      {"mul", &PoolingMover::PastScale},
      {"div", &PoolingMover::PastScale},
      {"neg", &PoolingMover::PastScale},
      {"add", &PoolingMover::PastSum},
      {"sub", &PoolingMover::PastSum},
      {"unsqueeze", &PoolingMover::PastAxes},
      {"squeeze", &PoolingMover::PastAxes},
      {"permute", &PoolingMover::PastAxes},
      {"transpose", &PoolingMover::PastAxes},
      {"linear", &PoolingMover::PastLinear},
      {"matmul", &PoolingMover::PastMatrixProduct},
      {"mm", &PoolingMover::PastMatrixProduct},
      {"bmm", &PoolingMover::PastMatrixProduct},
      {"addmm", &PoolingMover::PastMatrixProduct},
      {"conv1d", &PoolingMover::PastConvolution},
      {"conv2d", &PoolingMover::PastConvolution},
      {"conv3d", &PoolingMover::PastConvolution},
      {"conv_transpose1d", &PoolingMover::PastConvolution},
      {"conv_transpose2d", &PoolingMover::PastConvolution},
      {"conv_transpose3d", &PoolingMover::PastConvolution},
  };
  const auto step = kSteps->find(OperatorOf(node));
  if (step == kSteps->end()) return std::nullopt;
  return (this->*step->second)(node, pooling);
}

// A factor that is constant along what is pooled.
std::optional<std::string> PoolingMover::PastScale(const GraphNode& node, const Pooling& pooling) {
  if (HasArgument(node, "rounding_mode")) return std::nullopt;
  const auto self = FindTensor(node, "self");
  const auto other = FindTensor(node, "other");
  const bool may_swap = OperatorOf(node) == "mul";
  const auto is_constant = [&](const std::optional<std::string>& value) {
    return !value || ForOperand(pooling, uses_.TypeOf(*value).shape).is_plain();
  };
  const auto is_whole = [&](const std::optional<std::string>& value) {
    return value && uses_.TypeOf(*value) == node.result_types.at(0);
  };
  for (const auto& [scaled, factor] : {std::pair(self, other), std::pair(other, self)}) {
    if (!is_whole(scaled) || !is_constant(factor)) continue;
    if (scaled == other && !may_swap) continue;
    return builder_.AddLike(node, {{*scaled, Move(*scaled, pooling)}}, ShapeOf(pooling));
  }
  return std::nullopt;
}

// Both terms are pooled, each along the axes that it has; a number is constant along all.
std::optional<std::string> PoolingMover::PastSum(const GraphNode& node, const Pooling& pooling) {
  const auto self = FindTensor(node, "self");
  const auto other = FindTensor(node, "other");
  const TensorType& type = node.result_types.at(0);
  if (!self || uses_.TypeOf(*self).data_type != type.data_type) return std::nullopt;
  if (const auto number = FindNumber(node, "other")) {
    const double sign = OperatorOf(node) == "sub" ? -1 : 1;
    const double factor = sign * FindNumber(node, "alpha").value_or(1) * pooling.gain();
    return builder_.Shift(Move(*self, pooling), factor * *number);
  }
  if (!other || uses_.TypeOf(*other).data_type != type.data_type) return std::nullopt;
  std::map<std::string, std::string, std::less<>> instead;
  for (const std::string& value : {*self, *other}) {
    const Pooling own = ForOperand(pooling, uses_.TypeOf(value).shape);
    instead[value] = builder_.Scale(Move(value, own), GainBeside(pooling, own));
  }
  return builder_.AddLike(node, instead, ShapeOf(pooling));
}

// Operators that add, drop or exchange axes.
std::optional<std::string> PoolingMover::PastAxes(const GraphNode& node, const Pooling& pooling) {
  const auto self = FindTensor(node, "self");
  if (!self) return std::nullopt;
  const std::vector<int64_t>& shape = uses_.TypeOf(*self).shape;
  const int rank = static_cast<int>(shape.size());
  const std::string_view op = OperatorOf(node);
  Pooling own = pooling;
  if (op == "unsqueeze") {
    const auto axis = FindAxis(node, "dim", rank + 1);
    Require(own.axes.size() == shape.size() + 1);
    if (!axis || !pooling.axes.at(static_cast<size_t>(*axis)).is_plain()) return std::nullopt;
    own.axes.erase(own.axes.begin() + *axis);
  } else if (op == "squeeze") {
    const auto axes = FindAxes(node, "dim", rank);
    if (!axes) return std::nullopt;
    for (const int axis : *axes) {
      if (shape.at(static_cast<size_t>(axis)) == 1) {
        Require(static_cast<size_t>(axis) <= own.axes.size());
        own.axes.insert(own.axes.begin() + axis, Pooling::Axis());
      }
    }
  } else if (op == "transpose") {
    const auto first = FindAxis(node, "dim0", rank);
    const auto second = FindAxis(node, "dim1", rank);
    if (!first || !second) return std::nullopt;
    std::swap(own.axes.at(static_cast<size_t>(*first)), own.axes.at(static_cast<size_t>(*second)));
  } else {
    const auto order = FindInts(node, "dims", shape.size(), 0);
    if (!order) return std::nullopt;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t from = (*order).at(d) < 0 ? (*order).at(d) + rank : (*order).at(d);
      if (from < 0 || from >= rank) return std::nullopt;
      own.axes.at(static_cast<size_t>(from)) = pooling.axes.at(d);
    }
  }
  return builder_.AddLike(node, {{*self, Move(*self, own)}}, ShapeOf(pooling));
}

// Rows are pooled in the input, columns in weight and bias.
std::optional<std::string> PoolingMover::PastLinear(const GraphNode& node, const Pooling& pooling) {
  const auto input = FindTensor(node, "input");
  const auto weight = FindTensor(node, "weight");
  const auto bias = FindTensor(node, "bias");
  if (!input || !weight || uses_.TypeOf(*weight).shape.size() != 2) return std::nullopt;
  const size_t last = pooling.axes.size() - 1;
  Pooling rows = pooling;
  rows.axes.at(last) = {.outputs = uses_.TypeOf(*input).shape.at(last)};
  const Pooling columns = Along(uses_.TypeOf(*weight).shape, 0, pooling, last);
  std::string pooled_bias;
  if (bias) {
    const Pooling own = Along(uses_.TypeOf(*bias).shape, 0, pooling, last);
    pooled_bias = builder_.Scale(Move(*bias, own), GainBeside(pooling, own));
  }
  const std::string pooled_input = Move(*input, rows);
  const std::string pooled_weight = Move(*weight, columns);
  builder_.SetOrigin(node);
  const std::string result = builder_.Linear(pooled_input, pooled_weight, pooled_bias);
  const auto depth = static_cast<double>(uses_.TypeOf(*weight).shape.at(1));
  products_.before += depth * static_cast<double>(node.result_types.at(0).elements());
  products_.after += depth * static_cast<double>(builder_.TypeOf(result).elements());
  return result;
}

// Rows are pooled in the first factor, columns in the second.
std::optional<std::string> PoolingMover::PastMatrixProduct(const GraphNode& node,
                                                           const Pooling& pooling) {
  const std::optional<ProductNode> product = FindFactors(node);
  if (!product || !IsOne(node, "alpha") || !IsOne(node, "beta")) return std::nullopt;
  const auto& [left, right] = *product;
  const std::vector<int64_t>& left_shape = uses_.TypeOf(left).shape;
  const std::vector<int64_t>& right_shape = uses_.TypeOf(right).shape;
  const size_t rank = pooling.axes.size();
  if (left_shape.size() != rank || left_shape.size() < 2 || right_shape.size() < 2) {
    return std::nullopt;
  }
  Pooling rows = pooling;
  rows.axes.at(rank - 1) = {.outputs = left_shape.at(rank - 1)};
  const Pooling columns = Along(right_shape, right_shape.size() - 1, pooling, rank - 1);
  // Batches of two factors have no sum of products.
  for (size_t d = 0; right_shape.size() > 2 && d + 2 < rank; ++d) {
    if (!pooling.axes.at(d).is_plain()) return std::nullopt;
  }
  std::map<std::string, std::string, std::less<>> instead;
  if (OperatorOf(node) == "addmm") {
    const std::string self = FindTensor(node, "self").value_or("");
    if (self.empty()) return std::nullopt;
    const Pooling own = ForOperand(pooling, uses_.TypeOf(self).shape);
    instead[self] = builder_.Scale(Move(self, own), GainBeside(pooling, own));
  }
  // A product with itself is no place for two replacements by name.
  if (left == right || instead.contains(left) || instead.contains(right)) return std::nullopt;
  instead[left] = Move(left, rows);
  instead[right] = Move(right, columns);
  builder_.SetOrigin(node);
  const auto depth = static_cast<double>(left_shape.back());
  products_.before += depth * static_cast<double>(node.result_types.at(0).elements());
  const std::string result = builder_.AddLike(node, instead, ShapeOf(pooling));
  products_.after += depth * static_cast<double>(builder_.TypeOf(result).elements());
  return result;
}

std::optional<GraphEdit> FindReduceFirst(const GraphUses& uses, const GraphNode& node) {
  const std::optional<PoolingNode> found = FindPooling(uses, node);
  if (!found || found->pooling.is_plain()) return std::nullopt;
  EditBuilder builder(uses, node);
  PoolingMover mover(uses, builder);
  const std::string pooled = mover.Move(found->input, found->pooling);
  const Products& products = mover.products();
  if (products.before == 0 || products.after > kMostLeft * products.before) return std::nullopt;
  return builder.Finish(pooled);
}

}  // namespace mtmc::kernel
