// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/loop_check.h"

#include <algorithm>
#include <unordered_set>

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;

constexpr int64_t kMaxExtent = int64_t{1} << 31;
constexpr int64_t kMaxElements = int64_t{1} << 48;
// A matrix product of 2^17 rows, columns and terms has 2^51.
constexpr int64_t kMaxPoints = int64_t{1} << 56;

bool AreWithin(const std::vector<int64_t>& extents, int64_t max_points) {
  int64_t points = 1;
  for (const int64_t extent : extents) {
    if (extent < 0 || extent > kMaxExtent) return false;
    // An extent of zero must not hide what the others come to.
    if (extent == 0) continue;
    if (points > max_points / extent) return false;
    points *= extent;
  }
  return true;
}

size_t OperandCount(Operator op) {
  switch (op) {
    case Operator::kNeg:
    case Operator::kAbs:
    case Operator::kExp:
    case Operator::kExp2:
    case Operator::kExpm1:
    case Operator::kLog:
    case Operator::kLog2:
    case Operator::kLog1p:
    case Operator::kSqrt:
    case Operator::kRsqrt:
    case Operator::kReciprocal:
    case Operator::kSin:
    case Operator::kCos:
    case Operator::kTan:
    case Operator::kTanh:
    case Operator::kErf:
    case Operator::kSigmoid:
    case Operator::kFloor:
    case Operator::kCeil:
    case Operator::kTrunc:
    case Operator::kRound:
    case Operator::kSign:
    case Operator::kNot:
    case Operator::kIsNan:
    case Operator::kIsInf:
      return 1;
    case Operator::kSelect:
      return 3;
    default:
      return 2;
  }
}

// Checks each node of an expression once.
class ExpressionCheck {
 public:
  ExpressionCheck(const Loop& loop, const LoopNest& nest) : loop_(loop), nest_(nest) {}

  bool IsSound(const ScalarPtr& root) {
    if (root == nullptr) return false;
    if (!seen_.insert(root.get()).second) return true;
    return std::all_of(root->operands.begin(), root->operands.end(),
                       [this](const ScalarPtr& operand) { return IsSound(operand); }) &&
           IsNodeSound(*root);
  }

 private:
  bool IsNodeSound(const Scalar& node) const {
    switch (node.kind) {
      case Scalar::Kind::kLiteral:
        return true;
      case Scalar::Kind::kAxis:
        return node.axis >= 0 && static_cast<size_t>(node.axis) < loop_.extents.size();
      case Scalar::Kind::kRead:
        return IsReadSound(node);
      case Scalar::Kind::kOperator:
        return IsOperatorSound(node);
      case Scalar::Kind::kCast:
        return node.operands.size() == 1;
    }
    return false;
  }

  bool IsReadSound(const Scalar& read) const {
    const auto found = nest_.types.find(read.tensor);
    if (found == nest_.types.end()) return false;
    const TensorType& type = found->second;
    return type.data_type == read.type && type.shape.size() == read.operands.size() &&
           std::all_of(read.operands.begin(), read.operands.end(),
                       [](const ScalarPtr& index) { return index->type == DataType::kI64; });
  }

  static bool IsOperatorSound(const Scalar& node) {
    const std::vector<ScalarPtr>& operands = node.operands;
    if (operands.size() != OperandCount(node.op)) return false;
    if (node.op == Operator::kSelect && operands[0]->type != DataType::kBool) return false;
    if (operands.size() > 1 && operands[operands.size() - 2]->type != operands.back()->type) {
      return false;
    }
    const bool is_division = node.op == Operator::kFloorDiv || node.op == Operator::kMod;
    const bool is_whole_literal =
        operands.back()->is_literal() && !IsFloating(operands.back()->type);
    return !is_division || !is_whole_literal || operands.back()->integer != 0;
  }

  const Loop& loop_;
  const LoopNest& nest_;
  std::unordered_set<const Scalar*> seen_;
};

bool HasSoundSpace(const Loop& loop) {
  if (loop.results.empty() || loop.results.size() != loop.types.size()) return false;
  if (loop.reduction_axes < 0 || loop.output_axes() < 0) return false;
  if (!AreWithin(loop.extents, kMaxPoints)) return false;
  const bool is_empty = std::count(loop.extents.begin(), loop.extents.end(), 0) > 0;
  const bool is_constant =
      loop.form == Loop::Form::kMap && loop.body != nullptr && loop.body->is_literal();
  if (is_empty && !is_constant) return false;
  const std::vector<int64_t> shape(loop.extents.begin(), loop.extents.begin() + loop.output_axes());
  return std::all_of(loop.types.begin(), loop.types.end(), [&shape](const TensorType& type) {
    return type.shape == shape && IsWithinLimits(shape);
  });
}

}  // namespace

bool IsWithinLimits(const std::vector<int64_t>& extents) {
  return AreWithin(extents, kMaxElements);
}

bool IsSound(const Loop& loop, const LoopNest& nest) {
  if (!HasSoundSpace(loop)) return false;
  ExpressionCheck check(loop, nest);
  switch (loop.form) {
    case Loop::Form::kContract:
      return check.IsSound(loop.lhs) && check.IsSound(loop.rhs) && loop.lhs->type == loop.rhs->type;
    case Loop::Form::kScan:
      return loop.scan_axis >= 0 && static_cast<size_t>(loop.scan_axis) < loop.extents.size() &&
             check.IsSound(loop.body);
    default:
      return check.IsSound(loop.body);
  }
}

}  // namespace mtmc::kernel
