// SPDX-License-Identifier: Apache-2.0
// Expressions of KernelWriter: how scalars become text and locals.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "kernel/algebra/scalar_key.h"
#include "kernel/graph/text.h"
#include "kernel/view/group_view.h"
#include "kernel/writer/kernel_writer.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;

// C's precedences, larger binds tighter.
enum : int {
  kConditional = 1,
  kLogicalOr,
  kLogicalAnd,
  kBitwiseOr,
  kBitwiseXor,
  kBitwiseAnd,
  kEquality,
  kRelational,
  kShift,
  kAdditive,
  kMultiplicative,
  kUnary,
  kPrimary,
};

bool IsIntegerType(DataType type) { return !IsFloating(type) && type != DataType::kBool; }

// A name, a plain number or an element of a local array: nothing gained by another local.
bool IsSingleWord(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '[' || c == ']';
  });
}

bool HasRead(const ScalarPtr& scalar) {
  if (scalar->kind == Scalar::Kind::kRead) return true;
  return std::any_of(scalar->operands.begin(), scalar->operands.end(), HasRead);
}

void CountUses(const ScalarPtr& root, std::map<const Scalar*, int>& uses) {
  if (++uses[root.get()] > 1) return;
  for (const ScalarPtr& operand : root->operands) CountUses(operand, uses);
}

// Function of one floating-point operand. `f32` is the CUDA name; OpenCL overloads `f64`.
struct UnaryFunction {
  Operator op;
  std::string_view f32;
  std::string_view f64;
  // OpenCL function for f32 on any device; empty to use `f64`.
  std::string_view opencl_f32;
};

constexpr UnaryFunction kUnaryFunctions[] = {
    {Operator::kExp, "expf", "exp", ""},
    {Operator::kExp2, "exp2f", "exp2", ""},
    {Operator::kExpm1, "expm1f", "expm1", "fast_expm1"},
    {Operator::kLog, "logf", "log", ""},
    {Operator::kLog2, "log2f", "log2", ""},
    {Operator::kLog1p, "log1pf", "log1p", "fast_log1p"},
    {Operator::kSqrt, "sqrtf", "sqrt", ""},
    {Operator::kRsqrt, "rsqrtf", "rsqrt", ""},
    {Operator::kSin, "sinf", "sin", ""},
    {Operator::kCos, "cosf", "cos", ""},
    {Operator::kTan, "tanf", "tan", ""},
    {Operator::kTanh, "tanhf", "tanh", "fast_tanh"},
    {Operator::kErf, "erff", "erf", "fast_erf"},
    {Operator::kSigmoid, "sigmoid", "sigmoid_f64", "sigmoid"},
    {Operator::kFloor, "floorf", "floor", ""},
    {Operator::kCeil, "ceilf", "ceil", ""},
    {Operator::kTrunc, "truncf", "trunc", ""},
    {Operator::kRound, "rintf", "rint", ""},
    {Operator::kIsNan, "isnan", "isnan", ""},
    {Operator::kIsInf, "isinf", "isinf", ""},
};

}  // namespace

// A local's type: i64 values whose range is known to be small are int.
std::string KernelWriter::TypeText(const ScalarPtr& expression) const {
  if (expression->type == DataType::kI64 && !IsLong(expression)) return "int";
  return text_.ComputeType(expression->type);
}

// Whether the C type of an i64 expression's text is 64 bits wide.
bool KernelWriter::IsLong(const ScalarPtr& expression) const {
  if (expression->type != DataType::kI64) return false;
  switch (expression->kind) {
    case Scalar::Kind::kRead:
      return true;
    case Scalar::Kind::kCast:
      // Printed as a cast to the 64-bit type, or as the operand when nothing changes.
      return expression->operands[0]->type != DataType::kI64 || IsLong(expression->operands[0]);
    case Scalar::Kind::kLiteral:
    case Scalar::Kind::kAxis:
      return !RangeOf(expression, extents_).Within(INT32_MIN + 1, INT32_MAX);
    case Scalar::Kind::kOperator:
      if (!RangeOf(expression, extents_).Within(INT32_MIN + 1, INT32_MAX)) return true;
      return std::any_of(expression->operands.begin(), expression->operands.end(),
                         [this](const ScalarPtr& operand) { return IsLong(operand); });
  }
  return true;
}

// Whether evaluating the expression could read out of range.
bool KernelWriter::NeedsGuard(const ScalarPtr& expression) const {
  if (expression->kind == Scalar::Kind::kRead) {
    const TensorType& type = TypeOf(expression->tensor);
    // A value that is already at hand is not read again.
    if (FindBound(expression->tensor, ValueKey(expression->tensor, expression->operands))) {
      return false;
    }
    for (size_t d = 0; d < expression->operands.size(); ++d) {
      const ScalarPtr index = SimplifyIndex(expression->operands[d], extents_);
      if (!RangeOf(index, extents_).Within(0, type.shape[d] - 1)) return true;
    }
  }
  return std::any_of(expression->operands.begin(), expression->operands.end(),
                     [this](const ScalarPtr& operand) { return NeedsGuard(operand); });
}

std::string KernelWriter::Index(const ScalarPtr& index) {
  const bool outer = std::exchange(is_index_, true);
  std::string text = PrintPiece(SimplifyIndex(index, extents_)).text;
  is_index_ = outer;
  return text;
}

std::string KernelWriter::Print(const ScalarPtr& expression) { return PrintPiece(expression).text; }

std::string KernelWriter::Operand(const ScalarPtr& expression, int min_precedence) {
  Piece piece = PrintPiece(expression);
  if (piece.precedence >= min_precedence) return std::move(piece.text);
  return Concat("(", piece.text, ")");
}

std::string KernelWriter::Body(const ScalarPtr& body, std::span<const ScalarPtr> axes) {
  const ScalarPtr root = SubstituteAxes(body, std::vector<ScalarPtr>(axes.begin(), axes.end()));
  std::map<const Scalar*, int> uses;
  CountUses(root, uses);
  const std::set<const Scalar*> outer = std::exchange(shared_, {});
  const bool is_outer_index = std::exchange(is_index_, false);
  for (const auto& [node, count] : uses) {
    if (count > 1 && !node->operands.empty() && node->kind != Scalar::Kind::kRead) {
      shared_.insert(node);
    }
  }
  std::string text = PrintNamed(root, wish_);
  shared_ = outer;
  is_index_ = is_outer_index;
  return text;
}

std::string KernelWriter::Value(const std::string& tensor, std::span<const ScalarPtr> indices) {
  const std::string key = ValueKey(tensor, indices);
  if (const std::string* bound = FindBound(tensor, key)) return *bound;
  const Parameter* parameter = FindParameter(tensor);
  std::string text;
  if (parameter != nullptr && !parameter->is_written) {
    const DataType type = parameter->type.data_type;
    const std::string offset = Index(OffsetOf(parameter->type, indices, extents_));
    text = Fresh(tensor + "_i");
    Line(Concat("const ", text_.ComputeType(type), " ", text, " = ",
                text_.Load(parameter->name, type, offset), ";"));
  } else {
    const Loop* loop = FindLoop(view_, tensor);
    const std::string outer = std::exchange(wish_, tensor);
    text = loop == nullptr || loop->form != Loop::Form::kMap ? Concat("UNBOUND_", tensor)
                                                             : Body(loop->body, indices);
    wish_ = outer;
  }
  scopes_.back().values.insert_or_assign(key, text);
  return text;
}

// The expression as a local called like `wish`, unless it is one word already.
std::string KernelWriter::PrintNamed(const ScalarPtr& expression, const std::string& wish) {
  std::string text = PrintPiece(expression).text;
  if (IsSingleWord(text)) return text;
  const std::string name = Fresh(wish);
  Line(Concat("const ", TypeText(expression), " ", name, " = ", text, ";"));
  return name;
}

// A select one of whose sides must not be evaluated in vain, as an `if`.
std::string KernelWriter::PrintGuarded(const Scalar& select, const std::string& wish) {
  const std::string condition = Print(select.operands[0]);
  const ScalarPtr& then = select.operands[1];
  const ScalarPtr& otherwise = select.operands[2];
  const bool is_else_guarded = NeedsGuard(otherwise);
  const std::string name = Fresh(wish);
  // A 64-bit type holds either side.
  const std::string type = text_.ComputeType(select.type);
  if (is_else_guarded) {
    Line(Concat(type, " ", name, ";"));
  } else {
    Line(Concat(type, " ", name, " = ", Print(otherwise), ";"));
  }
  Open(Concat("if (", condition, ")"));
  Line(Concat(name, " = ", Print(then), ";"));
  if (is_else_guarded) {
    scopes_.pop_back();
    Line("} else {");
    scopes_.emplace_back();
    Line(Concat(name, " = ", Print(otherwise), ";"));
  }
  Close();
  return name;
}

KernelWriter::Piece KernelWriter::PrintPiece(const ScalarPtr& expression) {
  const Scalar& scalar = *expression;
  switch (scalar.kind) {
    case Scalar::Kind::kLiteral: {
      const bool is_negative =
          IsFloating(scalar.type) ? std::signbit(scalar.literal) : scalar.integer < 0;
      const std::string text = IsFloating(scalar.type)
                                   ? text_.FloatLiteral(scalar.literal, scalar.type)
                                   : text_.IntegerLiteral(IntegerOf(scalar), scalar.type);
      return {text, is_negative ? kUnary : kPrimary};
    }
    case Scalar::Kind::kAxis:
      return {axis_names_[static_cast<size_t>(scalar.axis)], kPrimary};
    case Scalar::Kind::kRead:
      return {Value(scalar.tensor, scalar.operands), kPrimary};
    case Scalar::Kind::kCast: {
      const ScalarPtr& operand = scalar.operands[0];
      if (text_.Cast("", operand->type, scalar.type).empty()) return PrintPiece(operand);
      return {text_.Cast(Operand(operand, kUnary), operand->type, scalar.type), kUnary};
    }
    case Scalar::Kind::kOperator:
      break;
  }
  if (!shared_.contains(expression.get())) return PrintOperator(expression);
  const std::string key = "=" + KeyOf(expression);
  if (const std::string* local = FindLocal(key)) return {*local, kPrimary};
  Piece piece = PrintOperator(expression);
  if (!IsSingleWord(piece.text)) {
    const std::string name = Fresh(wish_ + "_t");
    Line(Concat("const ", TypeText(expression), " ", name, " = ", piece.text, ";"));
    piece = {name, kPrimary};
  }
  scopes_.back().locals.insert_or_assign(key, piece.text);
  return piece;
}

// Whether data of a whole type may leave its range. Signed arithmetic would then be undefined,
// and compilers make use of that. Indices stay within their tensors.
bool KernelWriter::MayWrap(const Scalar& expression) const {
  if (is_index_ || (expression.type != DataType::kI32 && expression.type != DataType::kI64)) {
    return false;
  }
  const auto self = std::make_shared<Scalar>(expression);
  const bool is_int = expression.type == DataType::kI32;
  // Ranges saturate at 2^62.
  constexpr int64_t kMost = (int64_t{1} << 62) - 1;
  return HasRead(self) &&
         !RangeOf(self, extents_).Within(is_int ? INT32_MIN : -kMost, is_int ? INT32_MAX : kMost);
}

// Sum, difference or product of data that wraps around.
KernelWriter::Piece KernelWriter::Wrapping(const Scalar& expression, std::string_view symbol) {
  const bool is_int = expression.type == DataType::kI32;
  const std::string wide = text_.is_cuda() ? "unsigned long long" : "ulong";
  const std::string type = is_int ? (text_.is_cuda() ? "unsigned int" : "uint") : wide;
  const auto operand = [&](size_t i) {
    return Concat("(", type, ")", Operand(expression.operands[i], kUnary));
  };
  const std::string sum = expression.operands.size() == 1
                              ? Concat(symbol, operand(0))
                              : Concat(operand(0), " ", symbol, " ", operand(1));
  return {Concat("(", text_.ComputeType(expression.type), ")(", sum, ")"), kUnary};
}

KernelWriter::Piece KernelWriter::Infix(const Scalar& expression, std::string_view symbol,
                                        int precedence) {
  const bool is_ring = expression.op == Operator::kAdd || expression.op == Operator::kSub ||
                       expression.op == Operator::kMul;
  if (is_ring && MayWrap(expression)) return Wrapping(expression, symbol);
  std::string left = Operand(expression.operands[0], precedence);
  const std::string right = Operand(expression.operands[1], precedence + 1);
  // 32-bit operands whose result may not fit.
  if (expression.type == DataType::kI64 && !IsLong(expression.operands[0]) &&
      !IsLong(expression.operands[1])) {
    const auto self = std::make_shared<Scalar>(expression);
    if (IsLong(self)) left = Concat("(", text_.ComputeType(DataType::kI64), ")", left);
  }
  return {Concat(left, " ", symbol, " ", right), precedence};
}

// An index divided by a constant: a local, so that its parts are shared.
KernelWriter::Piece KernelWriter::PrintIndexDivision(const ScalarPtr& expression) {
  const bool is_quotient = expression->op == Operator::kFloorDiv;
  const ScalarPtr& dividend = expression->operands[0];
  if (HasRead(expression) && RangeOf(dividend, extents_).low < 0) {
    return {Concat(is_quotient ? "floor_div(" : "floor_mod(", Print(dividend), ", ",
                   Print(expression->operands[1]), ")"),
            kPrimary};
  }
  const std::string key = "=" + KeyOf(expression);
  if (const std::string* local = FindLocal(key)) return {*local, kPrimary};
  Piece piece = Infix(*expression, is_quotient ? "/" : "%", kMultiplicative);
  const std::string word = Print(dividend);
  const bool is_nameable =
      IsSingleWord(word) && expression->operands[1]->is_literal() && word.size() < 24;
  const std::string name =
      Fresh(is_nameable
                ? Concat(word, is_quotient ? "_div_" : "_mod_", IntegerOf(*expression->operands[1]))
                : std::string(is_quotient ? "quotient" : "remainder_of"));
  Line(Concat("const ", TypeText(expression), " ", name, " = ", piece.text, ";"));
  scopes_.back().locals.insert_or_assign(key, name);
  return {name, kPrimary};
}

KernelWriter::Piece KernelWriter::PrintOperator(const ScalarPtr& expression) {
  const Scalar& scalar = *expression;
  const bool is_integer = IsIntegerType(scalar.type);
  switch (scalar.op) {
    case Operator::kAdd:
      return Infix(scalar, "+", kAdditive);
    case Operator::kSub:
      return Infix(scalar, "-", kAdditive);
    case Operator::kMul:
      return Infix(scalar, "*", kMultiplicative);
    case Operator::kDiv:
      return Infix(scalar, "/", kMultiplicative);
    case Operator::kFloorDiv:
    case Operator::kMod:
      if (is_integer) return PrintIndexDivision(expression);
      return PrintCall(scalar);
    case Operator::kNeg:
      if (MayWrap(scalar)) return Wrapping(scalar, "-");
      return {Concat("-", Operand(scalar.operands[0], kPrimary)), kUnary};
    case Operator::kLess:
      return Infix(scalar, "<", kRelational);
    case Operator::kLessEqual:
      return Infix(scalar, "<=", kRelational);
    case Operator::kEqual:
      return Infix(scalar, "==", kEquality);
    case Operator::kNotEqual:
      return Infix(scalar, "!=", kEquality);
    case Operator::kAnd:
      return Infix(scalar, "&&", kLogicalAnd);
    case Operator::kOr: {
      // Compilers warn about && within || without parentheses.
      const std::string left = Operand(scalar.operands[0], kBitwiseOr);
      return {Concat(left, " || ", Operand(scalar.operands[1], kBitwiseOr)), kLogicalOr};
    }
    case Operator::kNot:
      return {Concat("!", Operand(scalar.operands[0], kPrimary)), kUnary};
    case Operator::kBitAnd:
      return Infix(scalar, "&", kBitwiseAnd);
    case Operator::kBitOr:
      return Infix(scalar, "|", kBitwiseOr);
    case Operator::kBitXor:
      return Infix(scalar, "^", kBitwiseXor);
    case Operator::kShiftLeft:
      return Infix(scalar, "<<", kShift);
    case Operator::kShiftRight:
      return Infix(scalar, ">>", kShift);
    case Operator::kSelect: {
      if (NeedsGuard(scalar.operands[1]) || NeedsGuard(scalar.operands[2])) {
        return {PrintGuarded(scalar, wish_), kPrimary};
      }
      const std::string condition = Operand(scalar.operands[0], kLogicalOr);
      const std::string then = Operand(scalar.operands[1], kConditional + 1);
      return {Concat(condition, " ? ", then, " : ", Operand(scalar.operands[2], kConditional)),
              kConditional};
    }
    default:
      return PrintCall(scalar);
  }
}

KernelWriter::Piece KernelWriter::PrintCall(const Scalar& scalar) {
  const DataType operand_type = scalar.operands[0]->type;
  const bool is_double = operand_type == DataType::kF64;
  const bool is_floating = IsFloating(operand_type);
  const bool is_cuda = text_.is_cuda();
  for (const UnaryFunction& function : kUnaryFunctions) {
    if (function.op != scalar.op) continue;
    std::string_view name = is_double || !is_cuda ? function.f64 : function.f32;
    if (!is_cuda && !is_double && !function.opencl_f32.empty()) name = function.opencl_f32;
    return {Concat(name, "(", Print(scalar.operands[0]), ")"), kPrimary};
  }
  const std::string suffix = is_cuda && !is_double ? "f" : "";
  switch (scalar.op) {
    case Operator::kAbs: {
      const std::string x = Print(scalar.operands[0]);
      if (is_floating)
        return {Concat(is_double || !is_cuda ? "fabs(" : "fabsf(", x, ")"), kPrimary};
      if (is_cuda) return {Concat("abs(", x, ")"), kPrimary};
      // OpenCL's is unsigned, and so would be what is computed with it.
      return {Concat("(", text_.ComputeType(scalar.type), ")abs(", x, ")"), kUnary};
    }
    case Operator::kReciprocal:
      return {Concat(is_double ? "1.0" : "1.0f", " / ",
                     Operand(scalar.operands[0], kMultiplicative + 1)),
              kMultiplicative};
    case Operator::kSign: {
      const std::string x = Operand(scalar.operands[0], kRelational + 1);
      const std::string type = text_.ComputeType(scalar.type);
      return {Concat("(", type, ")((", x, " > 0) - (", x, " < 0))"), kUnary};
    }
    case Operator::kMin:
    case Operator::kMax: {
      const bool is_max = scalar.op == Operator::kMax;
      // Beside a number the comparison alone keeps PyTorch's rule for NaN.
      const Scalar& other = *scalar.operands[1];
      if (!is_floating || (other.is_literal() && !std::isnan(other.literal))) {
        const std::string a = PrintNamed(scalar.operands[0], wish_ + "_t");
        const std::string b = Operand(scalar.operands[1], kRelational + 1);
        return {Concat(a, is_max ? " < " : " > ", b, " ? ", b, " : ", a), kConditional};
      }
      const std::string a = Print(scalar.operands[0]);
      return {Concat(is_max ? "maximum_" : "minimum_", is_double ? "f64" : "f32", "(", a, ", ",
                     Print(scalar.operands[1]), ")"),
              kPrimary};
    }
    case Operator::kPow: {
      const std::string a = Print(scalar.operands[0]);
      if (is_floating) {
        return {Concat("pow", suffix, "(", a, ", ", Print(scalar.operands[1]), ")"), kPrimary};
      }
      const std::string type = text_.ComputeType(scalar.type);
      return {
          Concat("(", type, ")pow((double)(", a, "), (double)(", Print(scalar.operands[1]), "))"),
          kUnary};
    }
    case Operator::kFloorDiv:
    case Operator::kMod: {
      const std::string a = Print(scalar.operands[0]);
      return {Concat(scalar.op == Operator::kMod ? "remainder_" : "floor_divide_",
                     is_double ? "f64" : "f32", "(", a, ", ", Print(scalar.operands[1]), ")"),
              kPrimary};
    }
    default:
      return {"0", kPrimary};
  }
}

}  // namespace mtmc::kernel
