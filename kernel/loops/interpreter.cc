// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/interpreter.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;

// The sign of the divisor, as PyTorch has it for numbers of every type.
double FloorMod(double a, double b) {
  const double remainder = std::fmod(a, b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// The quotient whose remainder FloorMod gives.
double FloorDivide(double a, double b) {
  if (b == 0) return a / b;
  const double remainder = std::fmod(a, b);
  const double quotient = std::nearbyint((a - remainder) / b);
  return remainder != 0 && (remainder < 0) != (b < 0) ? quotient - 1 : quotient;
}

double PropagateNan(double a, double b, double chosen) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : chosen;
}

double Unary(Operator op, double x) {
  switch (op) {
    case Operator::kNeg:
      return -x;
    case Operator::kAbs:
      return std::fabs(x);
    case Operator::kExp:
      return std::exp(x);
    case Operator::kExp2:
      return std::exp2(x);
    case Operator::kExpm1:
      return std::expm1(x);
    case Operator::kLog:
      return std::log(x);
    case Operator::kLog2:
      return std::log2(x);
    case Operator::kLog1p:
      return std::log1p(x);
    case Operator::kSqrt:
      return std::sqrt(x);
    case Operator::kRsqrt:
      return 1 / std::sqrt(x);
    case Operator::kReciprocal:
      return 1 / x;
    case Operator::kSin:
      return std::sin(x);
    case Operator::kCos:
      return std::cos(x);
    case Operator::kTan:
      return std::tan(x);
    case Operator::kTanh:
      return std::tanh(x);
    case Operator::kErf:
      return std::erf(x);
    case Operator::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Operator::kFloor:
      return std::floor(x);
    case Operator::kCeil:
      return std::ceil(x);
    case Operator::kTrunc:
      return std::trunc(x);
    case Operator::kRound:
      return std::nearbyint(x);
    case Operator::kSign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case Operator::kNot:
      return x == 0;
    case Operator::kIsNan:
      return std::isnan(x);
    case Operator::kIsInf:
      return std::isinf(x);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

double Binary(Operator op, double a, double b) {
  const auto bits = [](double x) { return static_cast<int64_t>(x); };
  switch (op) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSub:
      return a - b;
    case Operator::kMul:
      return a * b;
    case Operator::kDiv:
      return a / b;
    case Operator::kFloorDiv:
      return FloorDivide(a, b);
    case Operator::kMod:
      return FloorMod(a, b);
    case Operator::kMin:
      return PropagateNan(a, b, std::fmin(a, b));
    case Operator::kMax:
      return PropagateNan(a, b, std::fmax(a, b));
    case Operator::kPow:
      return std::pow(a, b);
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
    case Operator::kBitAnd:
      return static_cast<double>(bits(a) & bits(b));
    case Operator::kBitOr:
      return static_cast<double>(bits(a) | bits(b));
    case Operator::kBitXor:
      return static_cast<double>(bits(a) ^ bits(b));
    case Operator::kShiftLeft:
      return static_cast<double>(bits(a) << bits(b));
    case Operator::kShiftRight:
      return static_cast<double>(bits(a) >> bits(b));
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

double Convert(double value, DataType type) {
  if (type == DataType::kBool) return value != 0;
  return IsFloating(type) ? value : std::trunc(value);
}

// Runs the loops over the tensors known so far. The first failure is kept; what
// follows it is not used.
class Interpreter {
 public:
  explicit Interpreter(HostTensors tensors) : tensors_(std::move(tensors)) {}

  absl::Status Run(const Loop& loop);

  HostTensors TakeTensors() { return std::move(tensors_); }

 private:
  // What a combiner keeps of the elements so far.
  struct Accumulator {
    double value = 0;
    double second = 0;
    int64_t count = 0;
  };

  double Evaluate(const Scalar& node);
  double EvaluateRead(const Scalar& node);
  double EvaluateOperator(const Scalar& node);
  static void Combine(Combiner combiner, double element, Accumulator& state);
  Accumulator ReduceAt(const Loop& loop, int64_t inner);
  void SetAxes(const std::vector<int64_t>& extents, int first, int last, int64_t offset);
  void RunReduce(const Loop& loop);
  void RunScan(const Loop& loop);

  HostTensors tensors_;
  std::vector<int64_t> axes_;
  absl::Status status_;
};

double Interpreter::Evaluate(const Scalar& node) {
  switch (node.kind) {
    case Scalar::Kind::kLiteral:
      return IsFloating(node.type) ? node.literal : static_cast<double>(node.integer);
    case Scalar::Kind::kAxis:
      return static_cast<double>(axes_[static_cast<size_t>(node.axis)]);
    case Scalar::Kind::kRead:
      return EvaluateRead(node);
    case Scalar::Kind::kCast:
      return Convert(Evaluate(*node.operands[0]), node.type);
    case Scalar::Kind::kOperator:
      return EvaluateOperator(node);
  }
  return 0;
}

double Interpreter::EvaluateRead(const Scalar& node) {
  const auto found = tensors_.find(node.tensor);
  if (found == tensors_.end()) {
    status_.Update(absl::InvalidArgumentError("tensor \"" + node.tensor + "\" has no value"));
    return 0;
  }
  const HostTensor& tensor = found->second;
  int64_t offset = 0;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const auto index = static_cast<int64_t>(Evaluate(*node.operands[i]));
    if (i >= tensor.type.shape.size() || index < 0 || index >= tensor.type.shape[i]) {
      status_.Update(absl::InvalidArgumentError("index " + std::to_string(index) +
                                                " leaves tensor \"" + node.tensor + "\""));
      return 0;
    }
    offset = offset * tensor.type.shape[i] + index;
  }
  return tensor.values[static_cast<size_t>(offset)];
}

double Interpreter::EvaluateOperator(const Scalar& node) {
  if (node.op == Operator::kSelect) {
    return Evaluate(*node.operands[Evaluate(*node.operands[0]) != 0 ? 1 : 2]);
  }
  const double first = Evaluate(*node.operands[0]);
  if (node.operands.size() == 1) return Unary(node.op, first);
  if (node.op == Operator::kAnd && first == 0) return 0;
  if (node.op == Operator::kOr && first != 0) return 1;
  return Binary(node.op, first, Evaluate(*node.operands[1]));
}

void Interpreter::Combine(Combiner combiner, double element, Accumulator& state) {
  const bool is_first = state.count++ == 0;
  const auto take_if = [&](bool is_better) {
    if (!is_first && !is_better) return;
    state.value = element;
    state.second = static_cast<double>(state.count - 1);
  };
  switch (combiner) {
    case Combiner::kSum:
      state.value += element;
      return;
    case Combiner::kProduct:
      state.value = is_first ? element : state.value * element;
      return;
    case Combiner::kMax:
      state.value = is_first ? element : Binary(Operator::kMax, state.value, element);
      return;
    case Combiner::kMin:
      state.value = is_first ? element : Binary(Operator::kMin, state.value, element);
      return;
    case Combiner::kAny:
      state.value = state.value != 0 || element != 0;
      return;
    case Combiner::kAll:
      state.value = (is_first || state.value != 0) && element != 0;
      return;
    case Combiner::kArgMax:
      return take_if(element > state.value || (std::isnan(element) && !std::isnan(state.value)));
    case Combiner::kArgMin:
      return take_if(element < state.value || (std::isnan(element) && !std::isnan(state.value)));
    case Combiner::kWelford: {
      const double delta = element - state.value;
      state.value += delta / static_cast<double>(state.count);
      state.second += delta * (element - state.value);
      return;
    }
    case Combiner::kOnlineSoftmax: {
      const double max = is_first ? element : std::fmax(state.value, element);
      const double kept =
          is_first || state.second == 0 ? 0 : state.second * std::exp(state.value - max);
      // Nothing but -inf so far has no exponent; NaN stays what it is.
      state.second = kept + (std::isinf(element) && max < 0 ? 0 : std::exp(element - max));
      state.value = max;
      return;
    }
  }
}

// Sets axes first .. last - 1 to the row-major position `offset`.
void Interpreter::SetAxes(const std::vector<int64_t>& extents, int first, int last,
                          int64_t offset) {
  for (int axis = last - 1; axis >= first; --axis) {
    const int64_t extent = extents[static_cast<size_t>(axis)];
    axes_[static_cast<size_t>(axis)] = offset % extent;
    offset /= extent;
  }
}

Interpreter::Accumulator Interpreter::ReduceAt(const Loop& loop, int64_t inner) {
  Accumulator state;
  const int axes = static_cast<int>(loop.extents.size());
  for (int64_t i = 0; i < inner; ++i) {
    SetAxes(loop.extents, loop.output_axes(), axes, i);
    if (loop.form == Loop::Form::kContract) {
      state.value += Evaluate(*loop.lhs) * Evaluate(*loop.rhs);
    } else {
      Combine(loop.combiner, Evaluate(*loop.body), state);
    }
  }
  return state;
}

// Maps too: a reduction over no axes of one element.
void Interpreter::RunReduce(const Loop& loop) {
  int64_t inner = 1;
  for (size_t axis = static_cast<size_t>(loop.output_axes()); axis < loop.extents.size(); ++axis) {
    inner *= loop.extents[axis];
  }
  std::vector<HostTensor> results;
  for (const TensorType& type : loop.types) results.push_back({type, {}});
  const int64_t outer = loop.types[0].elements();
  for (int64_t i = 0; i < outer && status_.ok(); ++i) {
    SetAxes(loop.extents, 0, loop.output_axes(), i);
    if (loop.form == Loop::Form::kMap) {
      results[0].values.push_back(Evaluate(*loop.body));
      continue;
    }
    const Accumulator state = ReduceAt(loop, inner);
    results[0].values.push_back(state.value);
    if (results.size() > 1) results[1].values.push_back(state.second);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    tensors_.insert_or_assign(loop.results[i], std::move(results[i]));
  }
}

void Interpreter::RunScan(const Loop& loop) {
  HostTensor result{loop.types[0],
                    std::vector<double>(static_cast<size_t>(loop.types[0].elements()))};
  int64_t step = 1;
  for (size_t axis = static_cast<size_t>(loop.scan_axis) + 1; axis < loop.extents.size(); ++axis) {
    step *= loop.extents[axis];
  }
  const auto scan_axis = static_cast<size_t>(loop.scan_axis);
  for (int64_t i = 0; i < loop.types[0].elements() && status_.ok(); ++i) {
    SetAxes(loop.extents, 0, static_cast<int>(loop.extents.size()), i);
    const double element = Evaluate(*loop.body);
    const auto at = static_cast<size_t>(i);
    if (axes_[scan_axis] == 0) {
      result.values[at] = element;
    } else {
      const double before = result.values[static_cast<size_t>(i - step)];
      result.values[at] = loop.combiner == Combiner::kProduct ? before * element : before + element;
    }
  }
  tensors_.insert_or_assign(loop.results[0], std::move(result));
}

absl::Status Interpreter::Run(const Loop& loop) {
  axes_.assign(loop.extents.size(), 0);
  switch (loop.form) {
    case Loop::Form::kMap:
    case Loop::Form::kReduce:
    case Loop::Form::kContract:
      RunReduce(loop);
      break;
    case Loop::Form::kScan:
      RunScan(loop);
      break;
    case Loop::Form::kOpaque:
      return absl::UnimplementedError("node \"" + loop.node + "\" has no loop form");
  }
  return status_;
}

}  // namespace

absl::StatusOr<HostTensors> Interpret(const LoopNest& nest, HostTensors inputs) {
  Interpreter interpreter(std::move(inputs));
  for (const Loop& loop : nest.loops) {
    if (absl::Status status = interpreter.Run(loop); !status.ok()) return status;
  }
  return interpreter.TakeTensors();
}

}  // namespace mtmc::kernel
