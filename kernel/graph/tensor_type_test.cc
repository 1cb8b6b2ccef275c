// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/tensor_type.h"

#include <catch2/catch.hpp>

#include "kernel/graph/identifier.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

TEST_CASE("TensorType survives its text form", "[graph]") {
  const std::string text =
      GENERATE("f32[16,4096]", "f64[]", "bf16[0]", "bool[1,1,1]", "i64[3]", "u8[7]");
  CAPTURE(text);

  const std::optional<TensorType> type = FindTensorType(text);

  REQUIRE(type);
  CHECK(ToText(*type) == text);
}

TEST_CASE("TensorType counts elements and bytes", "[graph]") {
  CHECK(FindTensorType("f16[3,4]")->bytes() == 24);
  CHECK(FindTensorType("i64[]")->bytes() == 8);
  CHECK(FindTensorType("i64[5,0]")->elements() == 0);
}

TEST_CASE("FindTensorType refuses what is no tensor type", "[graph]") {
  const std::string text =
      GENERATE("", "[", "f32", "f32[", "f32]", "f32[1", "f32[1,]", "f32[,1]", "f32[-1]", "f32[+1]",
               "f32[a]", "float[1]", "f32[1][2]", "f32[9223372036854775808]",
               "f32[4294967296,4294967296]", "f32[0,9223372036854775807]");
  CAPTURE(text);

  CHECK_FALSE(FindTensorType(text));
}

TEST_CASE("IsOperatorName is a library, a name and perhaps an overload", "[graph]") {
  CHECK((IsOperatorName("aten::relu") && IsOperatorName("my_lib::f.out")));
  for (const char* text : {"", "relu", "aten::", "::relu", "aten:relu", "aten::sum.",
                           "aten::sum.a.b", "aten::a::b", "aten::a b"}) {
    CAPTURE(text);
    CHECK_FALSE(IsOperatorName(text));
  }
}

TEST_CASE("IsIdentifier is a C identifier", "[graph]") {
  CHECK((IsIdentifier("_a1") && IsIdentifier("A")));
  CHECK_FALSE(
      (IsIdentifier("") || IsIdentifier("1a") || IsIdentifier("a-b") || IsIdentifier("\xc3\xa9")));
  CHECK_FALSE(IsIdentifier(std::string(kMaxIdentifierBytes + 1, 'a')));
}

TEST_CASE("Concat joins text, characters and integers", "[graph]") {
  CHECK(Concat("a", 'b', std::string("c"), -1, uint64_t{18446744073709551615U}) ==
        "abc-118446744073709551615");
}

TEST_CASE("RealText reads as a real number", "[graph]") {
  CHECK(RealText(1) == "1.0");
  CHECK(RealText(1e-5) == "1e-05");
  CHECK(RealText(0.1) == "0.1");
}

}  // namespace
}  // namespace mtmc::kernel
