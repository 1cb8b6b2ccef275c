// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/loops/op_table.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;
using Operands = std::vector<ScalarPtr>;

// Position of a type in PyTorch's promotion order, category first.
int Rank(DataType type) {
  switch (type) {
    case DataType::kBool:
      return 0;
    case DataType::kU8:
      return 1;
    case DataType::kI8:
      return 2;
    case DataType::kI16:
      return 3;
    case DataType::kI32:
      return 4;
    case DataType::kI64:
      return 5;
    case DataType::kF16:
      return 6;
    case DataType::kBf16:
      return 7;
    case DataType::kF32:
      return 8;
    case DataType::kF64:
      return 9;
  }
  return 0;
}

int Category(DataType type) { return IsFloating(type) ? 2 : type == DataType::kBool ? 0 : 1; }

// Type in which two operands meet. A number yields to a tensor of its category, and so does
// a tensor without dimensions to one that has some.
DataType Promote(const Elements& a, const Elements& b, bool b_is_number) {
  const DataType of_a = a.type.data_type;
  const DataType of_b = b.type.data_type;
  if (b_is_number) {
    if (Category(of_b) <= Category(of_a)) return of_a;
    return Category(of_b) == 2 ? DataType::kF32 : of_b;
  }
  if (Category(of_a) == Category(of_b) && (a.rank() == 0) != (b.rank() == 0)) {
    return a.rank() == 0 ? of_b : of_a;
  }
  return Rank(of_a) >= Rank(of_b) ? of_a : of_b;
}

// The operand as PyTorch sees it in an operator whose arguments meet in `type`.
Elements Met(const Elements& operand, DataType type) {
  return CastTo(CastTo(operand, type), ComputeType(type));
}

// Defines the result as `body` over operands cast to the arithmetic type of the
// result. Whole numbers become whole numbers or halves of the result first; a floating-point
// number is not rounded to a half before it is used.
bool DefineArithmetic(NodeLowering& node, std::vector<Elements> operands,
                      const ScalarFunction& body) {
  const DataType result = node.result_type().data_type;
  for (Elements& operand : operands) {
    const bool is_whole = !IsFloating(operand.type.data_type);
    const bool is_met = is_whole && (operand.rank() > 0 || !IsFloating(result));
    operand = is_met ? Met(operand, result) : CastTo(operand, ComputeType(result));
  }
  node.Define(MapElements(operands, body));
  return true;
}

LowerNode Unary(Operator op) {
  return [op](NodeLowering& node) {
    return DefineArithmetic(node, {node.Tensor("self")},
                            [op](const Operands& x) { return Apply(op, {x[0]}); });
  };
}

LowerNode UnaryOf(const ScalarFunction& body) {
  return [body](NodeLowering& node) { return DefineArithmetic(node, {node.Tensor("self")}, body); };
}

// Rounding leaves integers as they are.
LowerNode Rounding(Operator op) {
  return UnaryOf(
      [op](const Operands& x) { return IsFloating(x[0]->type) ? Apply(op, {x[0]}) : x[0]; });
}

LowerNode Binary(Operator op) {
  return [op](NodeLowering& node) {
    const auto self = node.FindOperand("self");
    const auto other = node.FindOperand("other");
    if (!self || !other) return false;
    return DefineArithmetic(node, {*self, *other}, [op](const Operands& x) {
      return Apply(op, {x[0], x[1]});
    });
  };
}

// self + alpha * other, with either sign; rsub swaps them.
LowerNode ScaledSum(Operator op, bool is_swapped) {
  return [op, is_swapped](NodeLowering& node) {
    const auto self = node.FindOperand("self");
    const auto other = node.FindOperand("other");
    if (!self || !other) return false;
    const double alpha = node.Double("alpha", 1);
    return DefineArithmetic(node, {*self, *other}, [=](const Operands& x) {
      // Truth values have no 2, which a byte in memory would have.
      if (op == Operator::kAdd && x[0]->type == DataType::kBool) {
        return alpha == 0 ? x[0] : Apply(Operator::kOr, {x[0], x[1]});
      }
      const ScalarPtr& left = is_swapped ? x[1] : x[0];
      const ScalarPtr& right = is_swapped ? x[0] : x[1];
      return Apply(op, {left, Mul(Literal(alpha, left->type), right)});
    });
  };
}

bool LowerDiv(NodeLowering& node) {
  const auto self = node.FindOperand("self");
  const auto other = node.FindOperand("other");
  if (!self || !other) return false;
  const std::string rounding = node.FindText("rounding_mode");
  const bool is_floating = IsFloating(node.result_type().data_type);
  if (!is_floating && rounding != "floor") return false;
  return DefineArithmetic(node, {*self, *other}, [&](const Operands& x) {
    if (rounding == "floor") return Apply(Operator::kFloorDiv, {x[0], x[1]});
    const ScalarPtr quotient = Div(x[0], x[1]);
    if (rounding == "trunc") return Apply(Operator::kTrunc, {quotient});
    return quotient;
  });
}

// A power of a whole number, by squares. REQUIRES: the exponent is at least 0.
ScalarPtr WholePower(ScalarPtr square, int64_t exponent) {
  ScalarPtr power;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power = power == nullptr ? square : Mul(power, square);
    if (exponent > 1) square = Mul(square, square);
  }
  return power == nullptr ? Literal(1, square->type) : power;
}

// Small whole powers and roots as PyTorch computes them.
ScalarPtr PowerOf(const ScalarPtr& x, const ScalarPtr& exponent) {
  if (exponent->is_literal() && IsFloating(x->type)) {
    const double power = exponent->literal;
    if (power == 0) return Literal(1, x->type);
    if (power == 1) return x;
    if (power == 2) return Mul(x, x);
    if (power == 3) return Mul(Mul(x, x), x);
    if (power == 0.5) return Apply(Operator::kSqrt, {x});
    if (power == -0.5) return Apply(Operator::kRsqrt, {x});
    if (power == -1) return Apply(Operator::kReciprocal, {x});
    if (power == -2) return Apply(Operator::kReciprocal, {Mul(x, x)});
  }
  return Apply(Operator::kPow, {x, exponent});
}

bool LowerPow(NodeLowering& node) {
  const auto self = node.FindOperand("self");
  const auto exponent = node.FindOperand("exponent");
  if (!self || !exponent) return false;
  if (!IsFloating(node.result_type().data_type)) {
    // A negative exponent is an error in PyTorch, and must not wrap around to another one.
    const auto whole = node.FindInt("exponent");
    if (!whole || *whole < 0 || *whole > 64) return false;
    return DefineArithmetic(node, {*self},
                            [whole](const Operands& x) { return WholePower(x[0], *whole); });
  }
  return DefineArithmetic(node, {*self, *exponent},
                          [](const Operands& x) { return PowerOf(x[0], x[1]); });
}

LowerNode Comparison(const ScalarFunction& body) {
  return [body](NodeLowering& node) {
    const auto self = node.FindOperand("self");
    const auto other = node.FindOperand("other");
    if (!self || !other) return false;
    const DataType type = Promote(*self, *other, !node.IsTensor("other"));
    node.Define(MapElements({Met(*self, type), Met(*other, type)}, body));
    return true;
  };
}

LowerNode Logical(const ScalarFunction& body) {
  return [body](NodeLowering& node) {
    std::vector<Elements> operands = {CastTo(node.Tensor("self"), DataType::kBool)};
    if (node.IsTensor("other")) {
      operands.push_back(CastTo(node.Tensor("other"), DataType::kBool));
    }
    node.Define(MapElements(operands, body));
    return true;
  };
}

// Bitwise operators on bools are the logical ones.
LowerNode Bitwise(Operator on_integers, const ScalarFunction& on_bools) {
  return [=](NodeLowering& node) {
    if (node.result_type().data_type == DataType::kBool) return Logical(on_bools)(node);
    return Binary(on_integers)(node);
  };
}

LowerNode Predicate(Operator op) {
  return [op](NodeLowering& node) {
    const Elements self = node.Tensor("self");
    const DataType type = ComputeType(self.type.data_type);
    if (!IsFloating(type)) {
      node.Define(Constant(0, DataType::kBool, self.type.shape));
      return true;
    }
    node.Define(
        MapElements({CastTo(self, type)}, [op](const Operands& x) { return Apply(op, {x[0]}); }));
    return true;
  };
}

bool LowerClamp(NodeLowering& node) {
  std::vector<Elements> operands = {node.Tensor("self")};
  const auto low = node.FindOperand("min");
  const auto high = node.FindOperand("max");
  if (low) operands.push_back(*low);
  if (high) operands.push_back(*high);
  return DefineArithmetic(node, operands, [&](const Operands& x) {
    ScalarPtr value = x[0];
    if (low) value = Apply(Operator::kMax, {value, x[1]});
    if (high) value = Apply(Operator::kMin, {value, x.back()});
    return value;
  });
}

bool LowerWhere(NodeLowering& node) {
  const auto condition = node.FindTensor("condition");
  const auto self = node.FindOperand("self");
  const auto other = node.FindOperand("other");
  if (!condition || !self || !other) return false;
  const DataType type = node.result_type().data_type;
  node.Define(
      MapElements({CastTo(*condition, DataType::kBool), CastTo(*self, type), CastTo(*other, type)},
                  [](const Operands& x) { return Select(x[0], x[1], x[2]); }));
  return true;
}

bool LowerMaskedFill(NodeLowering& node) {
  const auto mask = node.FindTensor("mask");
  const auto value = node.FindOperand("value");
  if (!mask || !value) return false;
  const DataType type = node.result_type().data_type;
  node.Define(MapElements(
      {CastTo(*mask, DataType::kBool), CastTo(*value, type), CastTo(node.Tensor("self"), type)},
      [](const Operands& x) { return Select(x[0], x[1], x[2]); }));
  return true;
}

bool LowerLerp(NodeLowering& node) {
  const auto weight = node.FindOperand("weight");
  if (!weight) return false;
  return DefineArithmetic(
      node, {node.Tensor("self"), node.Tensor("end"), *weight}, [](const Operands& x) {
        // From the nearer end, which a weight of 1 so gives exactly.
        const ScalarPtr way = Sub(x[1], x[0]);
        const ScalarPtr from_self = Add(x[0], Mul(x[2], way));
        const ScalarPtr from_end = Sub(x[1], Mul(way, Sub(Literal(1, x[2]->type), x[2])));
        if (x[2]->is_literal()) return std::fabs(x[2]->literal) < 0.5 ? from_self : from_end;
        const ScalarPtr is_near = Less(Apply(Operator::kAbs, {x[2]}), Literal(0.5, x[2]->type));
        return Select(is_near, from_self, from_end);
      });
}

// addcmul and addcdiv: self + value * (tensor1 op tensor2).
LowerNode ScaledPair(Operator op) {
  return [op](NodeLowering& node) {
    const double value = node.Double("value", 1);
    return DefineArithmetic(
        node, {node.Tensor("self"), node.Tensor("tensor1"), node.Tensor("tensor2")},
        [=](const Operands& x) {
          return Add(x[0], Mul(Literal(value, x[0]->type), Apply(op, {x[1], x[2]})));
        });
  };
}

bool LowerCopy(NodeLowering& node) {
  node.Define(node.Tensor("self"));
  return true;
}

}  // namespace

void AddPointwiseOps(OpTable& table) {
  table["add"] = ScaledSum(Operator::kAdd, /*is_swapped=*/false);
  table["sub"] = ScaledSum(Operator::kSub, /*is_swapped=*/false);
  table["subtract"] = table["sub"];
  table["rsub"] = ScaledSum(Operator::kSub, /*is_swapped=*/true);
  table["mul"] = Binary(Operator::kMul);
  table["multiply"] = table["mul"];
  table["div"] = LowerDiv;
  table["divide"] = LowerDiv;
  table["true_divide"] = LowerDiv;
  table["floor_divide"] = Binary(Operator::kFloorDiv);
  table["remainder"] = Binary(Operator::kMod);
  table["pow"] = LowerPow;
  table["maximum"] = Binary(Operator::kMax);
  table["minimum"] = Binary(Operator::kMin);
  table["square"] = UnaryOf([](const Operands& x) { return Mul(x[0], x[0]); });
  table["neg"] = Unary(Operator::kNeg);
  table["abs"] = Unary(Operator::kAbs);
  table["sign"] = Unary(Operator::kSign);
  table["exp"] = Unary(Operator::kExp);
  table["exp2"] = Unary(Operator::kExp2);
  table["expm1"] = Unary(Operator::kExpm1);
  table["log"] = Unary(Operator::kLog);
  table["log2"] = Unary(Operator::kLog2);
  table["log1p"] = Unary(Operator::kLog1p);
  table["log10"] = UnaryOf([](const Operands& x) {
    return Mul(Apply(Operator::kLog2, {x[0]}), Literal(std::log10(2.0), x[0]->type));
  });
  table["sqrt"] = Unary(Operator::kSqrt);
  table["rsqrt"] = Unary(Operator::kRsqrt);
  table["reciprocal"] = Unary(Operator::kReciprocal);
  table["sin"] = Unary(Operator::kSin);
  table["cos"] = Unary(Operator::kCos);
  table["tan"] = Unary(Operator::kTan);
  table["tanh"] = Unary(Operator::kTanh);
  table["erf"] = Unary(Operator::kErf);
  table["sigmoid"] = Unary(Operator::kSigmoid);
  table["floor"] = Rounding(Operator::kFloor);
  table["ceil"] = Rounding(Operator::kCeil);
  table["trunc"] = Rounding(Operator::kTrunc);
  table["round"] = [](NodeLowering& node) {
    return node.Int("decimals", 0) == 0 && Rounding(Operator::kRound)(node);
  };
  table["eq"] = Comparison([](const Operands& x) { return Apply(Operator::kEqual, {x[0], x[1]}); });
  table["ne"] = Comparison([](const Operands& x) {
    return Apply(Operator::kNotEqual, {x[0], x[1]});
  });
  table["lt"] = Comparison([](const Operands& x) { return Less(x[0], x[1]); });
  table["le"] = Comparison([](const Operands& x) { return LessEqual(x[0], x[1]); });
  table["gt"] = Comparison([](const Operands& x) { return Less(x[1], x[0]); });
  table["ge"] = Comparison([](const Operands& x) { return LessEqual(x[1], x[0]); });
  const ScalarFunction both = [](const Operands& x) { return And(x.at(0), x.at(1)); };
  const ScalarFunction either = [](const Operands& x) {
    return Apply(Operator::kOr, {x.at(0), x.at(1)});
  };
  const ScalarFunction differ = [](const Operands& x) {
    return Apply(Operator::kNotEqual, {x.at(0), x.at(1)});
  };
  table["logical_and"] = Logical(both);
  table["logical_or"] = Logical(either);
  table["logical_xor"] = Logical(differ);
  table["logical_not"] = Logical([](const Operands& x) { return Apply(Operator::kNot, {x[0]}); });
  table["bitwise_and"] = Bitwise(Operator::kBitAnd, both);
  table["bitwise_or"] = Bitwise(Operator::kBitOr, either);
  table["bitwise_xor"] = Bitwise(Operator::kBitXor, differ);
  table["__and__"] = table["bitwise_and"];
  table["__or__"] = table["bitwise_or"];
  table["__xor__"] = table["bitwise_xor"];
  table["bitwise_not"] = [](NodeLowering& node) {
    if (node.result_type().data_type == DataType::kBool) {
      return Logical([](const Operands& x) { return Apply(Operator::kNot, {x[0]}); })(node);
    }
    return UnaryOf([](const Operands& x) {
      return Apply(Operator::kBitXor, {x[0], Literal(-1, x[0]->type)});
    })(node);
  };
  table["isnan"] = Predicate(Operator::kIsNan);
  table["isinf"] = Predicate(Operator::kIsInf);
  table["clamp"] = LowerClamp;
  table["clamp_min"] = LowerClamp;
  table["clamp_max"] = LowerClamp;
  table["where"] = LowerWhere;
  table["masked_fill"] = LowerMaskedFill;
  table["lerp"] = LowerLerp;
  table["addcmul"] = ScaledPair(Operator::kMul);
  table["addcdiv"] = ScaledPair(Operator::kDiv);
  for (const char* name : {"to", "_to_copy", "type_as", "clone", "contiguous", "alias", "detach",
                           "lift_fresh_copy", "float", "half", "double", "bfloat16"}) {
    table[name] = LowerCopy;
  }
}

}  // namespace mtmc::kernel
