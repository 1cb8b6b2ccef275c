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
// index into a tensor, or a predicate. Immutable; a subtree that is used twice
// is one shared node, so walk it with a memo of visited nodes. Index arithmetic
// has type kI64, predicates kBool.
struct Scalar {
  enum class Kind {
    kLiteral,   // `literal`, of `type`
    kAxis,      // value of loop axis `axis`, kI64
    kRead,      // element of `tensor`; operands are one index per dimension
    kOperator,  // `op` applied to the operands
    kCast,      // operand converted to `type`; to kBool it means `!= 0`
  };
  enum class Operator {
    // arithmetic; whole numbers wrap around. kFloorDiv and kMod round towards minus
    // infinity, the latter exactly. Inside an index their left operand is >= 0 wherever
    // the element is used.
    kAdd,
    kSub,
    kMul,
    kDiv,
    kFloorDiv,
    kMod,
    kNeg,
    kAbs,
    kMin,  // NaN if an operand is NaN, as in PyTorch
    kMax,
    kPow,
    // functions of floating-point operands
    kExp,
    kExp2,
    kExpm1,
    kLog,
    kLog2,
    kLog1p,
    kSqrt,
    kRsqrt,
    kReciprocal,
    kSin,
    kCos,
    kTan,
    kTanh,
    kErf,
    kSigmoid,
    kFloor,
    kCeil,
    kTrunc,
    kRound,  // half to even
    kSign,
    // comparisons and logic, result kBool
    kLess,
    kLessEqual,
    kEqual,
    kNotEqual,
    kAnd,
    kOr,
    kNot,
    kIsNan,
    kIsInf,
    // select(condition, then, else); only the chosen side may be evaluated
    kSelect,
    // bits of integers
    kBitAnd,
    kBitOr,
    kBitXor,
    kShiftLeft,
    kShiftRight,
  };
  Kind kind = Kind::kLiteral;
  DataType type = DataType::kF32;
  double literal = 0;   // of a floating-point or bool literal
  int64_t integer = 0;  // of an integer or bool literal
  int axis = 0;
  std::string tensor;
  Operator op = Operator::kAdd;
  std::vector<ScalarPtr> operands;

  bool is_literal() const { return kind == Kind::kLiteral; }
};

// Builders. They fold literals and drop identities (x + 0, x * 1, x / 1, and
// x * 0 for integers), so that printed kernels are short. Apply requires
// operands of one type, but for kSelect's condition, and gives that type, or
// kBool for a comparison. A literal has a value of its type: those of f16 and bf16
// are rounded, a cast whole number wraps around.
ScalarPtr Literal(double value, DataType type);
ScalarPtr Index(int64_t value);
ScalarPtr Axis(int axis);
ScalarPtr Read(std::string tensor, std::vector<ScalarPtr> indices, DataType type);
ScalarPtr Apply(Scalar::Operator op, std::vector<ScalarPtr> operands);
ScalarPtr Cast(ScalarPtr operand, DataType type);

// Axes 0 to count - 1.
std::vector<ScalarPtr> Axes(int count);

// The common arithmetic, so that index maps read like index maps.
ScalarPtr Add(ScalarPtr a, ScalarPtr b);
ScalarPtr Sub(ScalarPtr a, ScalarPtr b);
ScalarPtr Mul(ScalarPtr a, ScalarPtr b);
ScalarPtr Div(ScalarPtr a, ScalarPtr b);
ScalarPtr FloorDiv(ScalarPtr a, int64_t b);
ScalarPtr Mod(ScalarPtr a, int64_t b);
ScalarPtr Less(ScalarPtr a, ScalarPtr b);
ScalarPtr LessEqual(ScalarPtr a, ScalarPtr b);
ScalarPtr And(ScalarPtr a, ScalarPtr b);
ScalarPtr Select(ScalarPtr condition, ScalarPtr then, ScalarPtr otherwise);

// Copy of `root` in which every axis `a` is replaced by `axes[a]`.
// REQUIRES: every axis of `root` is less than axes.size().
ScalarPtr SubstituteAxes(const ScalarPtr& root, const std::vector<ScalarPtr>& axes);

// Copy of `root` in which every read is replaced by what `replace` returns, or
// kept when it returns null. The indices of a read are rewritten before
// `replace` sees it. Used to inline a producer into its consumer.
ScalarPtr ReplaceReads(const ScalarPtr& root,
                       const std::function<ScalarPtr(const Scalar& read)>& replace);

// Every distinct read node below `root`, in evaluation order.
std::vector<const Scalar*> Reads(const ScalarPtr& root);

// Whether both are the same expression.
bool AreEqual(const ScalarPtr& a, const ScalarPtr& b);

// C-like text for people and golden tests, such as `max(x[i0, i1], 0.0f)`.
std::string ToText(const ScalarPtr& root);

}  // namespace mtmc::kernel
