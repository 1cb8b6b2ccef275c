// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/scalar.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace mtmc::kernel {
namespace {

ScalarPtr X(std::vector<ScalarPtr> indices) {
  return Read("x", std::move(indices), DataType::kF32);
}

TEST_CASE("Builders fold index arithmetic on literals", "[loops]") {
  CHECK(ToText(Add(Mul(Index(3), Index(4)), Index(5))) == "17");
  CHECK(ToText(FloorDiv(Index(-3), 2)) == "-2");
  CHECK(ToText(Mod(Index(-3), 2)) == "1");
  CHECK(ToText(Select(Less(Index(1), Index(2)), X({}), Literal(0, DataType::kF32))) == "x[]");
}

TEST_CASE("Builders drop operands that change nothing", "[loops]") {
  CHECK(ToText(Add(Mul(Axis(0), Index(1)), Index(0))) == "i0");
  CHECK(ToText(Mul(Axis(0), Index(0))) == "0");
  CHECK(ToText(Div(X({Axis(0)}), Literal(1, DataType::kF32))) == "x[i0]");
}

TEST_CASE("Builders keep a floating-point product with zero because of NaN", "[loops]") {
  CHECK(ToText(Mul(X({}), Literal(0, DataType::kF32))) == "x[] * 0.0f");
}

TEST_CASE("A literal has a value of its type", "[loops]") {
  CHECK(Literal(0.1, DataType::kF16)->literal == 0.0999755859375);
  CHECK(Literal(65519, DataType::kF16)->literal == 65504);
  CHECK(std::isinf(Literal(65520, DataType::kF16)->literal));
  CHECK(Literal(3e-8, DataType::kF16)->literal == 0x1p-24);
  CHECK(Literal(0.1, DataType::kBf16)->literal == 0.10009765625);
  CHECK(std::isinf(Literal(-3.4e38, DataType::kBf16)->literal));
  CHECK(Cast(Index(-3), DataType::kU8)->integer == 253);
  CHECK(Cast(Index(200), DataType::kI8)->integer == -56);
}

TEST_CASE("SubstituteAxes replaces each axis once though a sum folds to one", "[loops]") {
  const ScalarPtr index = Add(Mul(Axis(0), Index(7)), Axis(1));

  const ScalarPtr moved = SubstituteAxes(index, {Index(0), Axis(0)});

  CHECK(ToText(moved) == "i0");
}

TEST_CASE("ReplaceReads sees indices that are rewritten already", "[loops]") {
  const ScalarPtr nested = X({Read("index", {Axis(0)}, DataType::kI64)});
  std::string seen;

  const ScalarPtr replaced = ReplaceReads(nested, [&seen](const Scalar& read) -> ScalarPtr {
    if (read.tensor == "index") return Axis(5);
    seen = ToText(std::make_shared<Scalar>(read));
    return nullptr;
  });

  CHECK(seen == "x[i5]");
  CHECK(ToText(replaced) == "x[i5]");
}

TEST_CASE("ToText writes parentheses where precedence asks for them", "[loops]") {
  const ScalarPtr sum = Add(Axis(0), Axis(1));
  CHECK(ToText(Mul(sum, Index(2))) == "(i0 + i1) * 2");
  CHECK(ToText(Sub(Axis(0), Sub(Axis(1), Axis(2)))) == "i0 - (i1 - i2)");
  CHECK(ToText(Cast(X({sum}), DataType::kBool)) == "bool(x[i0 + i1])");
}

}  // namespace
}  // namespace mtmc::kernel
