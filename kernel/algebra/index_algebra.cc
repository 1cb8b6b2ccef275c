// SPDX-License-Identifier: Apache-2.0
#include "kernel/algebra/index_algebra.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "kernel/algebra/scalar_key.h"

namespace mtmc::kernel {
namespace {

using Operator = Scalar::Operator;
// Sums and products of saturated ranges need more than 64 bits.
__extension__ using Wide = __int128;

constexpr int64_t kUnbounded = int64_t{1} << 62;

int64_t Saturate(Wide value) {
  if (value > kUnbounded) return kUnbounded;
  if (value < -kUnbounded) return -kUnbounded;
  return static_cast<int64_t>(value);
}

int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

int64_t FloorModulo(int64_t a, int64_t b) { return a - FloorDivide(a, b) * b; }

bool IsInteger(DataType type) { return !IsFloating(type) && type != DataType::kBool; }

bool IsOperator(const Scalar& scalar, Operator op) {
  return scalar.kind == Scalar::Kind::kOperator && scalar.op == op;
}

ScalarPtr MakeOperator(Operator op, std::vector<ScalarPtr> operands, DataType type) {
  auto scalar = std::make_shared<Scalar>();
  scalar->kind = Scalar::Kind::kOperator;
  scalar->op = op;
  scalar->type = type;
  scalar->operands = std::move(operands);
  return scalar;
}

ScalarPtr MakeInteger(int64_t value) {
  auto scalar = std::make_shared<Scalar>();
  scalar->type = DataType::kI64;
  scalar->integer = value;
  scalar->literal = static_cast<double>(value);
  return scalar;
}

// A sum of `coefficient * term` plus a constant; terms by their key. What exceeds
// the bounds of an index saturates: no element of a tensor is there.
struct Sum {
  struct Term {
    ScalarPtr scalar;
    int64_t coefficient = 0;
  };

  std::map<std::string, Term> terms;
  int64_t constant = 0;

  void Add(const std::string& key, const ScalarPtr& scalar, int64_t coefficient) {
    Term& term = terms[key];
    term.scalar = scalar;
    term.coefficient = Saturate(Wide{term.coefficient} + coefficient);
    if (term.coefficient == 0) terms.erase(key);
  }

  void Add(const Sum& other, int64_t factor) {
    for (const auto& [key, term] : other.terms) {
      Add(key, term.scalar, Saturate(Wide{term.coefficient} * factor));
    }
    constant = Saturate(constant + Wide{other.constant} * factor);
  }
};

// Turns expressions into sums. Holds the extents for one call.
class Normalizer {
 public:
  explicit Normalizer(std::span<const int64_t> extents) : extents_(extents) {}

  Sum Normalize(const ScalarPtr& index);
  ScalarPtr ToScalar(const Sum& sum) const;
  IndexRange RangeOfSum(const Sum& sum) const;

 private:
  Sum OfTerm(const ScalarPtr& scalar) const;
  Sum Quotient(const Sum& dividend, int64_t divisor);
  Sum Remainder(const Sum& dividend, int64_t divisor);
  Sum QuotientTerm(const Sum& dividend, int64_t divisor);
  Sum RemainderTerm(const Sum& dividend, int64_t divisor);
  std::pair<Sum, Sum> SplitMultiples(const Sum& sum, int64_t divisor) const;
  std::vector<int64_t> CommonFactors(const Sum& sum, int64_t divisor) const;
  bool Recombine(Sum& sum);

  std::span<const int64_t> extents_;
};

Sum Normalizer::OfTerm(const ScalarPtr& scalar) const {
  Sum sum;
  sum.Add(KeyOf(scalar), scalar, 1);
  return sum;
}

IndexRange Normalizer::RangeOfSum(const Sum& sum) const {
  Wide low = sum.constant;
  Wide high = sum.constant;
  for (const auto& [key, term] : sum.terms) {
    const IndexRange range = RangeOf(term.scalar, extents_);
    const Wide a = static_cast<Wide>(range.low) * term.coefficient;
    const Wide b = static_cast<Wide>(range.high) * term.coefficient;
    low += std::min(a, b);
    high += std::max(a, b);
  }
  return {Saturate(low), Saturate(high)};
}

// sum = divisor * first + second, with every multiple of the divisor in first.
std::pair<Sum, Sum> Normalizer::SplitMultiples(const Sum& sum, int64_t divisor) const {
  Sum multiples;
  Sum rest;
  for (const auto& [key, term] : sum.terms) {
    if (term.coefficient % divisor == 0) {
      multiples.Add(key, term.scalar, term.coefficient / divisor);
    } else {
      rest.Add(key, term.scalar, term.coefficient);
    }
  }
  multiples.constant = FloorDivide(sum.constant, divisor);
  rest.constant = FloorModulo(sum.constant, divisor);
  return {std::move(multiples), std::move(rest)};
}

// Factors that a coefficient shares with the divisor, largest first.
std::vector<int64_t> Normalizer::CommonFactors(const Sum& sum, int64_t divisor) const {
  std::vector<int64_t> factors;
  for (const auto& [key, term] : sum.terms) {
    const int64_t factor = std::gcd(term.coefficient, divisor);
    if (factor > 1 && factor < divisor) factors.push_back(factor);
  }
  std::sort(factors.rbegin(), factors.rend());
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  return factors;
}

Sum Normalizer::Quotient(const Sum& dividend, int64_t divisor) {
  auto [quotient, rest] = SplitMultiples(dividend, divisor);
  if (RangeOfSum(rest).Within(0, divisor - 1)) return quotient;
  // rest = g * a + b with b in [0, g): rest / divisor = a / (divisor / g).
  for (int64_t factor : CommonFactors(rest, divisor)) {
    auto [a, b] = SplitMultiples(rest, factor);
    if (!RangeOfSum(b).Within(0, factor - 1)) continue;
    quotient.Add(QuotientTerm(a, divisor / factor), 1);
    return quotient;
  }
  quotient.Add(QuotientTerm(rest, divisor), 1);
  return quotient;
}

Sum Normalizer::QuotientTerm(const Sum& dividend, int64_t divisor) {
  if (dividend.terms.size() == 1 && dividend.constant == 0) {
    const Sum::Term& term = dividend.terms.begin()->second;
    const Scalar& scalar = *term.scalar;
    if (term.coefficient == 1 && IsOperator(scalar, Operator::kFloorDiv)) {
      int64_t product = IntegerOf(*scalar.operands[1]);
      if (!__builtin_mul_overflow(product, divisor, &product)) {
        return Quotient(Normalize(scalar.operands[0]), product);
      }
    }
    if (term.coefficient == 1 && IsOperator(scalar, Operator::kMod)) {
      const int64_t modulus = IntegerOf(*scalar.operands[1]);
      if (modulus % divisor == 0) {
        return Remainder(Quotient(Normalize(scalar.operands[0]), divisor), modulus / divisor);
      }
    }
  }
  return OfTerm(MakeOperator(Operator::kFloorDiv, {ToScalar(dividend), MakeInteger(divisor)},
                             DataType::kI64));
}

Sum Normalizer::Remainder(const Sum& dividend, int64_t divisor) {
  Sum rest = SplitMultiples(dividend, divisor).second;
  if (RangeOfSum(rest).Within(0, divisor - 1)) return rest;
  // (g * a + b) % divisor = g * (a % (divisor / g)) + b with b in [0, g).
  for (int64_t factor : CommonFactors(rest, divisor)) {
    auto [a, b] = SplitMultiples(rest, factor);
    if (!RangeOfSum(b).Within(0, factor - 1)) continue;
    b.Add(RemainderTerm(a, divisor / factor), factor);
    return b;
  }
  return RemainderTerm(rest, divisor);
}

Sum Normalizer::RemainderTerm(const Sum& dividend, int64_t divisor) {
  if (RangeOfSum(dividend).Within(0, divisor - 1)) return dividend;
  if (dividend.terms.size() == 1 && dividend.constant == 0) {
    const Sum::Term& term = dividend.terms.begin()->second;
    if (term.coefficient == 1 && IsOperator(*term.scalar, Operator::kMod) &&
        IntegerOf(*term.scalar->operands[1]) % divisor == 0) {
      return Remainder(Normalize(term.scalar->operands[0]), divisor);
    }
  }
  return OfTerm(
      MakeOperator(Operator::kMod, {ToScalar(dividend), MakeInteger(divisor)}, DataType::kI64));
}

// Replaces k*c*(e / c) + k*(e % c) by k*e, and k*c*(e / c % d) + k*(e % c) by k*(e % (c*d)). True
// when it found such a pair.
bool Normalizer::Recombine(Sum& sum) {
  for (const auto& [low_key, low] : sum.terms) {
    if (!IsOperator(*low.scalar, Operator::kMod)) continue;
    const int64_t c = IntegerOf(*low.scalar->operands[1]);
    const Sum dividend = Normalize(low.scalar->operands[0]);
    const Sum quotient = Quotient(dividend, c);
    if (quotient.terms.size() != 1 || quotient.constant != 0) continue;
    const std::string quotient_key = quotient.terms.begin()->first;
    if (quotient.terms.begin()->second.coefficient != 1) continue;
    const int64_t k = low.coefficient;
    for (const auto& [high_key, high] : sum.terms) {
      if (Wide{high.coefficient} != Wide{k} * c) continue;
      Sum replacement;
      if (high_key == quotient_key) {
        replacement = dividend;
      } else if (IsOperator(*high.scalar, Operator::kMod) &&
                 KeyOf(high.scalar->operands[0]) == quotient_key) {
        int64_t product = IntegerOf(*high.scalar->operands[1]);
        if (__builtin_mul_overflow(product, c, &product)) continue;
        replacement = Remainder(dividend, product);
      } else {
        continue;
      }
      const std::string first = low_key;
      const std::string second = high_key;
      sum.terms.erase(first);
      sum.terms.erase(second);
      sum.Add(replacement, k);
      return true;
    }
  }
  return false;
}

Sum Normalizer::Normalize(const ScalarPtr& index) {
  const Scalar& scalar = *index;
  Sum sum;
  switch (scalar.kind) {
    case Scalar::Kind::kLiteral:
      if (!IsInteger(scalar.type)) return OfTerm(index);
      sum.constant = IntegerOf(scalar);
      return sum;
    case Scalar::Kind::kAxis:
      if (extents_[static_cast<size_t>(scalar.axis)] <= 1) return sum;
      return OfTerm(index);
    case Scalar::Kind::kCast:
      if (scalar.type == DataType::kI64 && scalar.operands[0]->type == DataType::kI64) {
        return Normalize(scalar.operands[0]);
      }
      break;
    case Scalar::Kind::kRead:
      break;
    case Scalar::Kind::kOperator: {
      if (!IsInteger(scalar.type)) break;
      if (scalar.op == Operator::kAdd || scalar.op == Operator::kSub) {
        sum = Normalize(scalar.operands[0]);
        sum.Add(Normalize(scalar.operands[1]), scalar.op == Operator::kAdd ? 1 : -1);
        while (Recombine(sum)) {
        }
        return sum;
      }
      if (scalar.op == Operator::kNeg) {
        sum.Add(Normalize(scalar.operands[0]), -1);
        return sum;
      }
      if (scalar.op == Operator::kMul) {
        Sum a = Normalize(scalar.operands[0]);
        Sum b = Normalize(scalar.operands[1]);
        if (!a.terms.empty()) std::swap(a, b);
        if (!a.terms.empty()) break;
        sum.Add(b, a.constant);
        return sum;
      }
      const bool divides = scalar.op == Operator::kFloorDiv || scalar.op == Operator::kMod;
      if (!divides) break;
      const Sum divisor = Normalize(scalar.operands[1]);
      if (!divisor.terms.empty() || divisor.constant <= 0) break;
      const Sum dividend = Normalize(scalar.operands[0]);
      sum = scalar.op == Operator::kFloorDiv ? Quotient(dividend, divisor.constant)
                                             : Remainder(dividend, divisor.constant);
      while (Recombine(sum)) {
      }
      return sum;
    }
  }
  if (scalar.operands.empty()) return OfTerm(index);
  auto copy = std::make_shared<Scalar>(scalar);
  for (ScalarPtr& operand : copy->operands) operand = SimplifyIndex(operand, extents_);
  return OfTerm(copy);
}

ScalarPtr Normalizer::ToScalar(const Sum& sum) const {
  std::vector<std::pair<std::string, Sum::Term>> terms(sum.terms.begin(), sum.terms.end());
  std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) {
    const bool a_negative = a.second.coefficient < 0;
    const bool b_negative = b.second.coefficient < 0;
    if (a_negative != b_negative) return b_negative;
    return std::abs(a.second.coefficient) > std::abs(b.second.coefficient);
  });
  ScalarPtr result;
  for (const auto& [key, term] : terms) {
    const int64_t magnitude = std::abs(term.coefficient);
    ScalarPtr product =
        magnitude == 1
            ? term.scalar
            : MakeOperator(Operator::kMul, {term.scalar, MakeInteger(magnitude)}, DataType::kI64);
    if (result == nullptr) {
      result =
          term.coefficient > 0 ? product : MakeOperator(Operator::kNeg, {product}, DataType::kI64);
    } else {
      result = MakeOperator(term.coefficient > 0 ? Operator::kAdd : Operator::kSub,
                            {result, product}, DataType::kI64);
    }
  }
  if (result == nullptr) return MakeInteger(sum.constant);
  if (sum.constant == 0) return result;
  return MakeOperator(sum.constant > 0 ? Operator::kAdd : Operator::kSub,
                      {result, MakeInteger(std::abs(sum.constant))}, DataType::kI64);
}

IndexRange RangeOfType(DataType type) {
  switch (type) {
    case DataType::kBool:
      return {0, 1};
    case DataType::kU8:
      return {0, 255};
    case DataType::kI8:
      return {-128, 127};
    case DataType::kI16:
      return {-32768, 32767};
    case DataType::kI32:
      return {INT32_MIN, INT32_MAX};
    default:
      return {-kUnbounded, kUnbounded};
  }
}

IndexRange RangeOfOperator(const Scalar& scalar, std::span<const int64_t> extents) {
  const IndexRange unknown = RangeOfType(scalar.type);
  if (!IsInteger(scalar.type)) return unknown;
  std::vector<IndexRange> r;
  for (const ScalarPtr& operand : scalar.operands) r.push_back(RangeOf(operand, extents));
  switch (scalar.op) {
    case Operator::kAdd:
      return {Saturate(Wide{r[0].low} + r[1].low), Saturate(Wide{r[0].high} + r[1].high)};
    case Operator::kSub:
      return {Saturate(Wide{r[0].low} - r[1].high), Saturate(Wide{r[0].high} - r[1].low)};
    case Operator::kNeg:
      return {-r[0].high, -r[0].low};
    case Operator::kMul: {
      const Wide products[] = {Wide{r[0].low} * r[1].low, Wide{r[0].low} * r[1].high,
                               Wide{r[0].high} * r[1].low, Wide{r[0].high} * r[1].high};
      return {Saturate(*std::min_element(products, products + 4)),
              Saturate(*std::max_element(products, products + 4))};
    }
    case Operator::kFloorDiv:
      if (r[1].low != r[1].high || r[1].low <= 0) return unknown;
      return {FloorDivide(r[0].low, r[1].low), FloorDivide(r[0].high, r[1].low)};
    case Operator::kMod:
      if (r[1].low != r[1].high || r[1].low <= 0) return unknown;
      if (r[0].Within(0, r[1].low - 1)) return r[0];
      return {0, r[1].low - 1};
    case Operator::kMin:
      return {std::min(r[0].low, r[1].low), std::min(r[0].high, r[1].high)};
    case Operator::kMax:
      return {std::max(r[0].low, r[1].low), std::max(r[0].high, r[1].high)};
    case Operator::kSelect:
      return {std::min(r[1].low, r[2].low), std::max(r[1].high, r[2].high)};
    default:
      return unknown;
  }
}

}  // namespace

IndexRange RangeOf(const ScalarPtr& index, std::span<const int64_t> extents) {
  const Scalar& scalar = *index;
  switch (scalar.kind) {
    case Scalar::Kind::kLiteral:
      if (IsFloating(scalar.type)) return RangeOfType(DataType::kI64);
      return {IntegerOf(scalar), IntegerOf(scalar)};
    case Scalar::Kind::kAxis:
      return {0, std::max<int64_t>(extents[static_cast<size_t>(scalar.axis)] - 1, 0)};
    case Scalar::Kind::kRead:
      return RangeOfType(scalar.type);
    case Scalar::Kind::kCast:
      if (IsInteger(scalar.type) && !IsFloating(scalar.operands[0]->type)) {
        const IndexRange range = RangeOf(scalar.operands[0], extents);
        const IndexRange limits = RangeOfType(scalar.type);
        if (range.Within(limits.low, limits.high)) return range;
      }
      return RangeOfType(scalar.type);
    case Scalar::Kind::kOperator:
      return RangeOfOperator(scalar, extents);
  }
  return RangeOfType(DataType::kI64);
}

ScalarPtr SimplifyIndex(const ScalarPtr& index, std::span<const int64_t> extents) {
  if (!IsInteger(index->type)) {
    if (index->operands.empty()) return index;
    auto copy = std::make_shared<Scalar>(*index);
    for (ScalarPtr& operand : copy->operands) operand = SimplifyIndex(operand, extents);
    return copy;
  }
  Normalizer normalizer(extents);
  return normalizer.ToScalar(normalizer.Normalize(index));
}

ScalarPtr OffsetOf(const TensorType& type, std::span<const ScalarPtr> indices,
                   std::span<const int64_t> extents) {
  ScalarPtr offset = MakeInteger(0);
  int64_t stride = 1;
  for (size_t d = type.shape.size(); d-- > 0;) {
    if (type.shape[d] != 1) {
      offset = MakeOperator(
          Operator::kAdd,
          {offset, MakeOperator(Operator::kMul, {indices[d], MakeInteger(stride)}, DataType::kI64)},
          DataType::kI64);
    }
    stride *= type.shape[d];
  }
  return SimplifyIndex(offset, extents);
}

std::vector<ScalarPtr> IndicesOf(const TensorType& type, const ScalarPtr& offset,
                                 std::span<const int64_t> extents) {
  std::vector<ScalarPtr> indices(type.shape.size());
  int64_t stride = 1;
  for (size_t d = type.shape.size(); d-- > 0;) {
    const int64_t extent = type.shape[d];
    if (extent <= 1) {
      indices[d] = MakeInteger(0);
      continue;
    }
    ScalarPtr index = offset;
    if (stride > 1) {
      index = MakeOperator(Operator::kFloorDiv, {index, MakeInteger(stride)}, DataType::kI64);
    }
    index = MakeOperator(Operator::kMod, {index, MakeInteger(extent)}, DataType::kI64);
    indices[d] = SimplifyIndex(index, extents);
    stride *= extent;
  }
  return indices;
}

std::optional<AxisStride> StrideAlong(const ScalarPtr& index, int axis,
                                      std::span<const int64_t> extents) {
  Normalizer normalizer(extents);
  const Sum sum = normalizer.Normalize(index);
  AxisStride result{.stride = 0, .alignment = std::abs(sum.constant)};
  for (const auto& [key, term] : sum.terms) {
    if (term.scalar->kind == Scalar::Kind::kAxis && term.scalar->axis == axis) {
      result.stride = term.coefficient;
      continue;
    }
    if (UsesAxis(term.scalar, axis)) return std::nullopt;
    result.alignment = std::gcd(result.alignment, term.coefficient);
  }
  if (result.alignment == 0) result.alignment = kUnbounded;
  return result;
}

bool UsesAxis(const ScalarPtr& index, int axis) {
  if (index->kind == Scalar::Kind::kAxis) return index->axis == axis;
  return std::any_of(index->operands.begin(), index->operands.end(),
                     [axis](const ScalarPtr& operand) { return UsesAxis(operand, axis); });
}

}  // namespace mtmc::kernel
