// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;

bool IsLiteralOf(const ScalarPtr& node, double value) {
  if (!node->is_literal()) return false;
  return IsFloating(node->type) ? node->literal == value
                                : static_cast<double>(node->integer) == value;
}

// The nearest integer towards zero; 0 for NaN.
int64_t ToInteger(double value) {
  constexpr double kBound = 9223372036854774784.0;  // the largest double below 2^63
  return std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, -kBound, kBound));
}

// To nearest even with so many bits after the leading one, as a float of that range.
double RoundTo(double value, int bits, int least_exponent, double most) {
  const double single = static_cast<float>(value);
  if (single == 0 || !std::isfinite(single)) return single;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(single), least_exponent) - bits);
  const double rounded = std::nearbyint(single / unit) * unit;
  return std::fabs(rounded) > most ? std::copysign(INFINITY, single) : rounded;
}

// What a half type keeps of a number. Wider ones are rounded where they are printed.
double InType(double value, DataType type) {
  if (type == DataType::kF16) return RoundTo(value, 10, -14, 65504);
  if (type == DataType::kBf16) return RoundTo(value, 7, -126, 0x1.fep127);
  return value;
}

// The low bits, as conversions of whole numbers keep them.
int64_t Wrap(int64_t value, DataType type) {
  switch (type) {
    case DataType::kBool:
      return value != 0 ? 1 : 0;
    case DataType::kU8:
      return static_cast<uint8_t>(value);
    case DataType::kI8:
      return static_cast<int8_t>(value);
    case DataType::kI16:
      return static_cast<int16_t>(value);
    case DataType::kI32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

ScalarPtr IntegerLiteral(int64_t value, DataType type) {
  auto node = std::make_shared<Scalar>();
  node->kind = Scalar::Kind::kLiteral;
  node->type = type;
  node->integer = value;
  node->literal = static_cast<double>(value);
  return node;
}

DataType ResultType(Operator op, const std::vector<ScalarPtr>& operands) {
  switch (op) {
    case Operator::kLess:
    case Operator::kLessEqual:
    case Operator::kEqual:
    case Operator::kNotEqual:
    case Operator::kAnd:
    case Operator::kOr:
    case Operator::kNot:
    case Operator::kIsNan:
    case Operator::kIsInf:
      return DataType::kBool;
    case Operator::kSelect:
      return operands[1]->type;
    default:
      return operands[0]->type;
  }
}

int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

bool HasQuotient(int64_t a, int64_t b) {
  return b != 0 && (b != -1 || a != std::numeric_limits<int64_t>::min());
}

// Absent where there is no result or it does not fit.
std::optional<int64_t> FoldInteger(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Operator::kSub:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Operator::kMul:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Operator::kFloorDiv:
      if (HasQuotient(a, b)) return FloorDivide(a, b);
      return std::nullopt;
    case Operator::kMod:
      if (HasQuotient(a, b)) return a - FloorDivide(a, b) * b;
      return std::nullopt;
    case Operator::kMin:
      return a < b ? a : b;
    case Operator::kMax:
      return a > b ? a : b;
    case Operator::kLess:
      return a < b;
    case Operator::kLessEqual:
      return a <= b;
    case Operator::kEqual:
      return a == b;
    case Operator::kNotEqual:
      return a != b;
    case Operator::kAnd:
      return a != 0 && b != 0;
    case Operator::kOr:
      return a != 0 || b != 0;
    default:
      return std::nullopt;
  }
}

// The four operations whose result over doubles, rounded once to the type, is
// what the device would compute.
std::optional<double> FoldFloating(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSub:
      return a - b;
    case Operator::kMul:
      return a * b;
    case Operator::kDiv:
      if (b != 0) return a / b;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

ScalarPtr FoldLiterals(Operator op, const ScalarPtr& a, const ScalarPtr& b) {
  const DataType result = ResultType(op, {a, b});
  if (IsFloating(a->type)) {
    const std::optional<double> value = FoldFloating(op, a->literal, b->literal);
    return value ? Literal(*value, result) : nullptr;
  }
  const std::optional<int64_t> value = FoldInteger(op, a->integer, b->integer);
  return value ? IntegerLiteral(*value, result) : nullptr;
}

// `x op b` or `a op x` that is one of its operands; null when it is neither.
ScalarPtr DropIdentity(Operator op, const ScalarPtr& a, const ScalarPtr& b) {
  const bool is_integer = !IsFloating(a->type);
  switch (op) {
    case Operator::kAdd:
      if (IsLiteralOf(b, 0)) return a;
      if (IsLiteralOf(a, 0)) return b;
      return nullptr;
    case Operator::kSub:
      return IsLiteralOf(b, 0) ? a : nullptr;
    case Operator::kMul:
      if (IsLiteralOf(b, 1)) return a;
      if (IsLiteralOf(a, 1)) return b;
      if (is_integer && IsLiteralOf(b, 0)) return b;
      if (is_integer && IsLiteralOf(a, 0)) return a;
      return nullptr;
    case Operator::kDiv:
      return IsLiteralOf(b, 1) ? a : nullptr;
    case Operator::kFloorDiv:
      return is_integer && (IsLiteralOf(b, 1) || IsLiteralOf(a, 0)) ? a : nullptr;
    case Operator::kMod:
      if (is_integer && IsLiteralOf(b, 1)) return IntegerLiteral(0, a->type);
      return is_integer && IsLiteralOf(a, 0) ? a : nullptr;
    case Operator::kAnd:
      if (a->is_literal()) return a->integer != 0 ? b : a;
      if (b->is_literal()) return b->integer != 0 ? a : b;
      return nullptr;
    case Operator::kOr:
      if (a->is_literal()) return a->integer != 0 ? a : b;
      if (b->is_literal()) return b->integer != 0 ? b : a;
      return nullptr;
    default:
      return nullptr;
  }
}

using Memo = std::unordered_map<const Scalar*, ScalarPtr>;

// `node` over other operands, built again so that it folds.
ScalarPtr Rebuild(const Scalar& node, std::vector<ScalarPtr> operands) {
  switch (node.kind) {
    case Scalar::Kind::kRead:
      return Read(node.tensor, std::move(operands), node.type);
    case Scalar::Kind::kCast:
      return Cast(std::move(operands[0]), node.type);
    default:
      return Apply(node.op, std::move(operands));
  }
}

// Copy of `root` bottom up; `replace` may replace an axis or a rebuilt read.
ScalarPtr Rewrite(const ScalarPtr& root,
                  const std::function<ScalarPtr(const ScalarPtr& node)>& replace, Memo& memo) {
  const auto found = memo.find(root.get());
  if (found != memo.end()) return found->second;
  bool is_changed = false;
  std::vector<ScalarPtr> operands;
  operands.reserve(root->operands.size());
  for (const ScalarPtr& operand : root->operands) {
    operands.push_back(Rewrite(operand, replace, memo));
    is_changed |= operands.back() != operand;
  }
  ScalarPtr result = is_changed ? Rebuild(*root, std::move(operands)) : root;
  // An operator may have folded to one of its operands, which is replaced already.
  const bool is_candidate = root->kind == Scalar::Kind::kAxis || root->kind == Scalar::Kind::kRead;
  if (is_candidate) {
    if (ScalarPtr replaced = replace(result)) result = std::move(replaced);
  }
  memo.emplace(root.get(), result);
  return result;
}

void CollectReads(const ScalarPtr& root, std::unordered_set<const Scalar*>& seen,
                  std::vector<const Scalar*>& reads) {
  if (!seen.insert(root.get()).second) return;
  for (const ScalarPtr& operand : root->operands) CollectReads(operand, seen, reads);
  if (root->kind == Scalar::Kind::kRead) reads.push_back(root.get());
}

}  // namespace

ScalarPtr Literal(double value, DataType type) {
  if (!IsFloating(type)) {
    return IntegerLiteral(type == DataType::kBool ? value != 0 : ToInteger(value), type);
  }
  auto node = std::make_shared<Scalar>();
  node->kind = Scalar::Kind::kLiteral;
  node->type = type;
  node->literal = InType(value, type);
  return node;
}

ScalarPtr Index(int64_t value) { return IntegerLiteral(value, DataType::kI64); }

ScalarPtr Axis(int axis) {
  auto node = std::make_shared<Scalar>();
  node->kind = Scalar::Kind::kAxis;
  node->type = DataType::kI64;
  node->axis = axis;
  return node;
}

ScalarPtr Read(std::string tensor, std::vector<ScalarPtr> indices, DataType type) {
  auto node = std::make_shared<Scalar>();
  node->kind = Scalar::Kind::kRead;
  node->type = type;
  node->tensor = std::move(tensor);
  node->operands = std::move(indices);
  return node;
}

ScalarPtr Apply(Operator op, std::vector<ScalarPtr> operands) {
  if (operands.size() == 2) {
    const ScalarPtr& a = operands[0];
    const ScalarPtr& b = operands[1];
    if (a->is_literal() && b->is_literal()) {
      if (ScalarPtr folded = FoldLiterals(op, a, b)) return folded;
    }
    if (ScalarPtr identity = DropIdentity(op, a, b)) return identity;
  }
  if (op == Operator::kNot && operands[0]->is_literal()) {
    return IntegerLiteral(operands[0]->integer == 0, DataType::kBool);
  }
  if (op == Operator::kNeg && operands[0]->is_literal()) {
    const Scalar& value = *operands[0];
    if (IsFloating(value.type)) return Literal(-value.literal, value.type);
    if (const auto negated = FoldInteger(Operator::kSub, 0, value.integer)) {
      return IntegerLiteral(*negated, value.type);
    }
  }
  if (op == Operator::kSelect && operands[0]->is_literal()) {
    return operands[0]->integer != 0 ? operands[1] : operands[2];
  }
  auto node = std::make_shared<Scalar>();
  node->kind = Scalar::Kind::kOperator;
  node->type = ResultType(op, operands);
  node->op = op;
  node->operands = std::move(operands);
  return node;
}

ScalarPtr Cast(ScalarPtr operand, DataType type) {
  if (operand->type == type) return operand;
  if (operand->is_literal()) {
    if (IsFloating(operand->type)) return Literal(operand->literal, type);
    if (IsFloating(type)) return Literal(static_cast<double>(operand->integer), type);
    return IntegerLiteral(Wrap(operand->integer, type), type);
  }
  auto node = std::make_shared<Scalar>();
  node->kind = Scalar::Kind::kCast;
  node->type = type;
  node->operands = {std::move(operand)};
  return node;
}

std::vector<ScalarPtr> Axes(int count) {
  std::vector<ScalarPtr> axes;
  for (int axis = 0; axis < count; ++axis) axes.push_back(Axis(axis));
  return axes;
}

ScalarPtr Add(ScalarPtr a, ScalarPtr b) {
  return Apply(Operator::kAdd, {std::move(a), std::move(b)});
}

ScalarPtr Sub(ScalarPtr a, ScalarPtr b) {
  return Apply(Operator::kSub, {std::move(a), std::move(b)});
}

ScalarPtr Mul(ScalarPtr a, ScalarPtr b) {
  return Apply(Operator::kMul, {std::move(a), std::move(b)});
}

ScalarPtr Div(ScalarPtr a, ScalarPtr b) {
  return Apply(Operator::kDiv, {std::move(a), std::move(b)});
}

ScalarPtr FloorDiv(ScalarPtr a, int64_t b) {
  return Apply(Operator::kFloorDiv, {std::move(a), Index(b)});
}

ScalarPtr Mod(ScalarPtr a, int64_t b) { return Apply(Operator::kMod, {std::move(a), Index(b)}); }

ScalarPtr Less(ScalarPtr a, ScalarPtr b) {
  return Apply(Operator::kLess, {std::move(a), std::move(b)});
}

ScalarPtr LessEqual(ScalarPtr a, ScalarPtr b) {
  return Apply(Operator::kLessEqual, {std::move(a), std::move(b)});
}

ScalarPtr And(ScalarPtr a, ScalarPtr b) {
  return Apply(Operator::kAnd, {std::move(a), std::move(b)});
}

ScalarPtr Select(ScalarPtr condition, ScalarPtr then, ScalarPtr otherwise) {
  return Apply(Operator::kSelect, {std::move(condition), std::move(then), std::move(otherwise)});
}

ScalarPtr SubstituteAxes(const ScalarPtr& root, const std::vector<ScalarPtr>& axes) {
  Memo memo;
  return Rewrite(
      root,
      [&axes](const ScalarPtr& node) -> ScalarPtr {
        if (node->kind != Scalar::Kind::kAxis) return nullptr;
        return axes.at(static_cast<size_t>(node->axis));
      },
      memo);
}

ScalarPtr ReplaceReads(const ScalarPtr& root,
                       const std::function<ScalarPtr(const Scalar& read)>& replace) {
  Memo memo;
  return Rewrite(
      root,
      [&replace](const ScalarPtr& node) -> ScalarPtr {
        return node->kind == Scalar::Kind::kRead ? replace(*node) : nullptr;
      },
      memo);
}

std::vector<const Scalar*> Reads(const ScalarPtr& root) {
  std::unordered_set<const Scalar*> seen;
  std::vector<const Scalar*> reads;
  if (root != nullptr) CollectReads(root, seen, reads);
  return reads;
}

bool AreEqual(const ScalarPtr& a, const ScalarPtr& b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->type != b->type || a->operands.size() != b->operands.size()) {
    return false;
  }
  switch (a->kind) {
    case Scalar::Kind::kLiteral:
      return a->integer == b->integer &&
             (a->literal == b->literal || (std::isnan(a->literal) && std::isnan(b->literal)));
    case Scalar::Kind::kAxis:
      return a->axis == b->axis;
    case Scalar::Kind::kRead:
      if (a->tensor != b->tensor) return false;
      break;
    case Scalar::Kind::kOperator:
      if (a->op != b->op) return false;
      break;
    case Scalar::Kind::kCast:
      break;
  }
  for (size_t i = 0; i < a->operands.size(); ++i) {
    if (!AreEqual(a->operands[i], b->operands[i])) return false;
  }
  return true;
}

}  // namespace mtmc::kernel
