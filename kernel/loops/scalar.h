// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/graph/tensor_type.h"

namespace mtmc::kernel {

struct Scalar;
using ScalarPtr = std::shared_ptr<const Scalar>;

// A scalar expression over the axes of a loop: the value of one element, an
// index into a tensor, or a predicate. Immutable tree; subtrees are shared.
// Index arithmetic has type kI64, predicates kBool.
struct Scalar {
  enum class Kind {
    kLiteral,   // `literal`, of `type`
    kAxis,      // value of loop axis `axis`, kI64
    kRead,      // element of `tensor`; operands are one index per dimension
    kOperator,  // `op` applied to the operands
    kCast,      // operand converted to `type`
  };
  enum class Operator {
    // arithmetic
    kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kNeg, kAbs, kMin, kMax, kPow,
    // functions of floating-point operands
    kExp, kExp2, kExpm1, kLog, kLog2, kLog1p, kSqrt, kRsqrt, kReciprocal, kSin, kCos, kTan, kTanh, kErf, kSigmoid,
    kFloor, kCeil, kTrunc, kRound, kSign,
    // comparisons and logic, result kBool
    kLess, kLessEqual, kEqual, kNotEqual, kAnd, kOr, kNot, kIsNan, kIsInf,
    // select(condition, then, else); only the chosen side may be evaluated
    kSelect,
    // bits of integers
    kBitAnd, kBitOr, kBitXor, kShiftLeft, kShiftRight,
  };
  Kind kind = Kind::kLiteral;
  DataType type = DataType::kF32;
  double literal = 0;  // exact for integers up to 2^53; wider ones use `integer`
  int64_t integer = 0;
  int axis = 0;
  std::string tensor;
  Operator op = Operator::kAdd;
  std::vector<ScalarPtr> operands;
};

// Builders. They fold literals and drop identities (x + 0, x * 1, x / 1, i % n for i < n is
// the caller's knowledge), so that printed kernels are short.
ScalarPtr Literal(double value, DataType type);
ScalarPtr Index(int64_t value);
ScalarPtr Axis(int axis);
ScalarPtr Read(std::string tensor, std::vector<ScalarPtr> indices, DataType type);
ScalarPtr Apply(Scalar::Operator op, std::vector<ScalarPtr> operands);
ScalarPtr Cast(ScalarPtr operand, DataType type);

// Copy of `root` in which every axis `a` is replaced by `axes[a]`.
ScalarPtr SubstituteAxes(const ScalarPtr& root, const std::vector<ScalarPtr>& axes);

// Copy of `root` in which every read is replaced by what `replace` returns, or
// kept when it returns null. Used to inline a producer into its consumer.
ScalarPtr ReplaceReads(const ScalarPtr& root,
                       const std::function<ScalarPtr(const Scalar& read)>& replace);

// Every read below `root`, in evaluation order.
std::vector<const Scalar*> Reads(const ScalarPtr& root);

// C-like text for people and golden tests, such as `max(x[i0, i1], 0.0f)`.
std::string ToText(const ScalarPtr& root);

}  // namespace mtmc::kernel
