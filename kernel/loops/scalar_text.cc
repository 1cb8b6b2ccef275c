// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>

#include "kernel/loops/scalar.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;

// How an operator is written: infix with its C precedence, or as a function.
struct Notation {
  const char* text;
  int precedence;  // 0: function call
};

Notation NotationOf(Operator op) {
  switch (op) {
    case Operator::kAdd:
      return {"+", 6};
    case Operator::kSub:
      return {"-", 6};
    case Operator::kMul:
      return {"*", 7};
    case Operator::kDiv:
      return {"/", 7};
    case Operator::kFloorDiv:
      return {"/", 7};
    case Operator::kMod:
      return {"%", 7};
    case Operator::kLess:
      return {"<", 4};
    case Operator::kLessEqual:
      return {"<=", 4};
    case Operator::kEqual:
      return {"==", 3};
    case Operator::kNotEqual:
      return {"!=", 3};
    case Operator::kAnd:
      return {"&&", 2};
    case Operator::kOr:
      return {"||", 1};
    case Operator::kBitAnd:
      return {"bit_and", 0};
    case Operator::kBitOr:
      return {"bit_or", 0};
    case Operator::kBitXor:
      return {"bit_xor", 0};
    case Operator::kShiftLeft:
      return {"shift_left", 0};
    case Operator::kShiftRight:
      return {"shift_right", 0};
    case Operator::kNeg:
      return {"neg", 0};
    case Operator::kAbs:
      return {"abs", 0};
    case Operator::kMin:
      return {"min", 0};
    case Operator::kMax:
      return {"max", 0};
    case Operator::kPow:
      return {"pow", 0};
    case Operator::kExp:
      return {"exp", 0};
    case Operator::kExp2:
      return {"exp2", 0};
    case Operator::kExpm1:
      return {"expm1", 0};
    case Operator::kLog:
      return {"log", 0};
    case Operator::kLog2:
      return {"log2", 0};
    case Operator::kLog1p:
      return {"log1p", 0};
    case Operator::kSqrt:
      return {"sqrt", 0};
    case Operator::kRsqrt:
      return {"rsqrt", 0};
    case Operator::kReciprocal:
      return {"reciprocal", 0};
    case Operator::kSin:
      return {"sin", 0};
    case Operator::kCos:
      return {"cos", 0};
    case Operator::kTan:
      return {"tan", 0};
    case Operator::kTanh:
      return {"tanh", 0};
    case Operator::kErf:
      return {"erf", 0};
    case Operator::kSigmoid:
      return {"sigmoid", 0};
    case Operator::kFloor:
      return {"floor", 0};
    case Operator::kCeil:
      return {"ceil", 0};
    case Operator::kTrunc:
      return {"trunc", 0};
    case Operator::kRound:
      return {"round", 0};
    case Operator::kSign:
      return {"sign", 0};
    case Operator::kNot:
      return {"not", 0};
    case Operator::kIsNan:
      return {"is_nan", 0};
    case Operator::kIsInf:
      return {"is_inf", 0};
    case Operator::kSelect:
      return {"select", 0};
  }
  return {"?", 0};
}

std::string LiteralText(const Scalar& node) {
  if (node.type == DataType::kBool) return node.integer != 0 ? "true" : "false";
  if (!IsFloating(node.type)) return std::to_string(node.integer);
  if (std::isnan(node.literal)) return "nan";
  if (std::isinf(node.literal)) return node.literal > 0 ? "inf" : "-inf";
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.9g", node.literal);
  std::string text = buffer;
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return node.type == DataType::kF64 ? text : text + "f";
}

std::string Print(const ScalarPtr& root, int outer);

std::string PrintList(const std::vector<ScalarPtr>& operands) {
  std::string text;
  for (const ScalarPtr& operand : operands) {
    if (!text.empty()) text += ", ";
    text += Print(operand, 0);
  }
  return text;
}

std::string Print(const ScalarPtr& root, int outer) {
  switch (root->kind) {
    case Scalar::Kind::kLiteral:
      return LiteralText(*root);
    case Scalar::Kind::kAxis:
      return "i" + std::to_string(root->axis);
    case Scalar::Kind::kRead:
      return root->tensor + "[" + PrintList(root->operands) + "]";
    case Scalar::Kind::kCast:
      return std::string(ToText(root->type)) + "(" + Print(root->operands[0], 0) + ")";
    case Scalar::Kind::kOperator:
      break;
  }
  const Notation notation = NotationOf(root->op);
  if (notation.precedence == 0) {
    return std::string(notation.text) + "(" + PrintList(root->operands) + ")";
  }
  // Left-associative: the right operand needs parentheses at equal precedence.
  const std::string text = Print(root->operands[0], notation.precedence) + " " + notation.text +
                           " " + Print(root->operands[1], notation.precedence + 1);
  return notation.precedence < outer ? "(" + text + ")" : text;
}

}  // namespace

std::string ToText(const ScalarPtr& root) { return Print(root, 0); }

}  // namespace mtmc::kernel
