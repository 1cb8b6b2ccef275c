// SPDX-License-Identifier: Apache-2.0
#include "kernel/writer/accumulator.h"

#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// Smallest or largest number of the type, for maxima and minima.
std::string Extreme(DialectText text, DataType type, bool is_lowest) {
  switch (type) {
    case DataType::kI64:
      return is_lowest ? text.IntegerLiteral(INT64_MIN, type)
                       : text.IntegerLiteral(INT64_MAX, type);
    case DataType::kI32:
    case DataType::kI16:
    case DataType::kI8:
    case DataType::kU8:
      return is_lowest ? "(-2147483647 - 1)" : "2147483647";
    case DataType::kBool:
      return is_lowest ? "0" : "1";
    default:
      return is_lowest ? "-INFINITY" : "INFINITY";
  }
}

}  // namespace

Accumulator::Accumulator(const Loop& loop, DialectText text)
    : loop_(&loop), text_(text), type_(loop.body->type) {
  // A bool has no portable array in shared memory.
  const bool is_bool = type_ == DataType::kBool;
  const std::string type = is_bool ? "int" : text.ComputeType(type_);
  const DataType data_type = is_bool ? DataType::kI32 : type_;
  const auto add = [&](std::string suffix, std::string empty) {
    fields_.push_back({std::move(suffix), type, data_type, std::move(empty)});
  };
  switch (loop.combiner) {
    case Combiner::kSum:
    case Combiner::kAny:
      add("", "0");
      break;
    case Combiner::kProduct:
    case Combiner::kAll:
      add("", "1");
      break;
    case Combiner::kMax:
      add("", Extreme(text, type_, /*is_lowest=*/true));
      break;
    case Combiner::kMin:
      add("", Extreme(text, type_, /*is_lowest=*/false));
      break;
    case Combiner::kArgMax:
    case Combiner::kArgMin:
      add("", Extreme(text, type_, loop.combiner == Combiner::kArgMax));
      fields_.push_back({"_index", text.ComputeType(DataType::kI64), DataType::kI64,
                         text.IntegerLiteral(INT64_MAX, DataType::kI64)});
      break;
    case Combiner::kWelford:
      add("", "0");
      add("_m2", "0");
      add("_n", "0");
      break;
    case Combiner::kOnlineSoftmax:
      add("", "-INFINITY");
      add("_sum", "0");
      break;
  }
}

bool Accumulator::needs_index() const {
  return loop_->combiner == Combiner::kArgMax || loop_->combiner == Combiner::kArgMin;
}

bool Accumulator::is_running_sum() const {
  switch (loop_->combiner) {
    case Combiner::kSum:
      return IsFloating(type_);
    case Combiner::kWelford:
    case Combiner::kOnlineSoftmax:
      return true;
    default:
      return false;
  }
}

std::string Accumulator::Exp(const std::string& operand) const {
  const bool is_float_call = text_.is_cuda() && type_ != DataType::kF64;
  return Concat(is_float_call ? "expf(" : "exp(", operand, ")");
}

std::string Accumulator::Abs(const std::string& operand) const {
  const bool is_float_call = text_.is_cuda() && type_ != DataType::kF64;
  return Concat(is_float_call ? "fabsf(" : "fabs(", operand, ")");
}

// First of the best, and NaN before everything, as in PyTorch.
std::string Accumulator::IsBetter(const std::string& value, const std::string& index,
                                  const Access& to) const {
  const std::string order = loop_->combiner == Combiner::kArgMax ? " > " : " < ";
  const std::string is_earlier = Concat(index, " < ", to(1));
  std::string text =
      Concat(value, order, to(0), " || (", value, " == ", to(0), " && ", is_earlier, ")");
  if (IsFloating(type_)) {
    text += Concat(" || (", value, " != ", value, " && (", to(0), " == ", to(0), " || ", is_earlier,
                   "))");
  }
  return text;
}

std::vector<std::string> Accumulator::Add(const Access& to, const Element& element) const {
  const std::string& x = element.value;
  switch (loop_->combiner) {
    case Combiner::kSum:
      return {Concat(to(0), " += ", x, ";")};
    case Combiner::kProduct:
      return {Concat(to(0), " *= ", x, ";")};
    case Combiner::kAny:
      return {Concat(to(0), " |= ", x, ";")};
    case Combiner::kAll:
      return {Concat(to(0), " &= ", x, ";")};
    case Combiner::kMax:
    case Combiner::kMin: {
      const std::string order = loop_->combiner == Combiner::kMax ? " > " : " < ";
      const std::string nan = IsFloating(type_) ? Concat(" || ", x, " != ", x) : "";
      return {Concat(to(0), " = ", x, order, to(0), nan, " ? ", x, " : ", to(0), ";")};
    }
    case Combiner::kArgMax:
    case Combiner::kArgMin:
      return {Concat("if (", IsBetter(x, element.index, to), ") {"),
              Concat("  ", to(0), " = ", x, ";"), Concat("  ", to(1), " = ", element.index, ";"),
              "}"};
    case Combiner::kWelford:
      return {Concat("const ", fields_[0].type, " delta = ", x, " - ", to(0), ";"),
              Concat(to(0), " += delta * ", element.inverse_count, ";"),
              Concat(to(1), " += delta * (", x, " - ", to(0), ");")};
    case Combiner::kOnlineSoftmax:
      // One exponential: of the two terms one has exponent 0.
      return {Concat("const ", fields_[0].type, " scale = ", x, " == ", to(0),
                     " ? 1.0f : ", Exp(Concat("-", Abs(Concat(x, " - ", to(0))))), ";"),
              Concat(to(1), " = ", x, " > ", to(0), " ? ", to(1), " * scale + 1.0f : ", to(1),
                     " + scale;"),
              Concat(to(0), " = ", x, " > ", to(0), " ? ", x, " : ", to(0), ";")};
  }
  return {};
}

std::vector<std::string> Accumulator::Merge(const Access& to, const Access& from) const {
  const std::string& type = fields_[0].type;
  switch (loop_->combiner) {
    case Combiner::kArgMax:
    case Combiner::kArgMin:
      return {Concat("if (", IsBetter(from(0), from(1), to), ") {"),
              Concat("  ", to(0), " = ", from(0), ";"), Concat("  ", to(1), " = ", from(1), ";"),
              "}"};
    case Combiner::kWelford:
      return {Concat("const ", type, " total = ", to(2), " + ", from(2), ";"),
              Concat("const ", type, " delta = ", from(0), " - ", to(0), ";"),
              Concat("const ", type, " weight = total > 0 ? ", from(2), " / total : 0;"),
              Concat(to(0), " += delta * weight;"),
              Concat(to(1), " += ", from(1), " + delta * delta * ", to(2), " * weight;"),
              Concat(to(2), " = total;")};
    case Combiner::kOnlineSoftmax:
      return {Concat("const ", type, " scale = ", from(0), " == ", to(0),
                     " ? 1.0f : ", Exp(Concat("-", Abs(Concat(from(0), " - ", to(0))))), ";"),
              Concat(to(1), " = ", from(0), " > ", to(0), " ? ", to(1), " * scale + ", from(1),
                     " : ", to(1), " + ", from(1), " * scale;"),
              Concat(to(0), " = ", from(0), " > ", to(0), " ? ", from(0), " : ", to(0), ";")};
    default:
      return Add(to, {.value = from(0), .index = "", .inverse_count = ""});
  }
}

}  // namespace mtmc::kernel
