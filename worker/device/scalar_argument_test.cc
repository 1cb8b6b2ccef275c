// SPDX-License-Identifier: Apache-2.0
#include "worker/device/scalar_argument.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <variant>

namespace mtmc::worker {
namespace {

using Number = std::variant<int64_t, double>;

template <typename T>
T Decode(const ScalarArgument& argument) {
  T value{};
  REQUIRE(argument.bytes == sizeof value);
  std::memcpy(&value, argument.value.data(), sizeof value);
  return value;
}

ScalarArgument Make(const std::string& type, Number value) {
  const auto scalar = kernel::FindScalarType(type);
  REQUIRE(scalar.has_value());
  const auto argument = MakeScalar(*scalar, value);
  REQUIRE(argument.has_value());
  return *argument;
}

}  // namespace

TEST_CASE("MakeScalar takes the width of the parameter", "[device]") {
  CHECK(Decode<int32_t>(Make("int", int64_t{-7})) == -7);
  CHECK(Decode<int64_t>(Make("long", int64_t{1} << 40)) == int64_t{1} << 40);
  CHECK(Decode<uint32_t>(Make("unsigned int", int64_t{4000000000})) == 4000000000U);
  CHECK(Decode<double>(Make("double", 0.1)) == 0.1);
}

TEST_CASE("MakeScalar turns an integer literal into a real where the kernel takes one",
          "[device]") {
  CHECK(Decode<float>(Make("float", int64_t{3})) == 3.0F);
}

TEST_CASE("MakeScalar refuses a real where the kernel takes an integer", "[device]") {
  CHECK_FALSE(MakeScalar(*kernel::FindScalarType("int"), 1.5).has_value());
}

TEST_CASE("MakeScalar rounds to half precision", "[device]") {
  // Expected bits are IEEE 754 binary16.
  const auto [value, bits] = GENERATE(table<double, int>({{0.0, 0x0000},
                                                          {-0.0, 0x8000},
                                                          {1.0, 0x3c00},
                                                          {-2.5, 0xc100},
                                                          {65504.0, 0x7bff},
                                                          {65519.0, 0x7bff},
                                                          {65520.0, 0x7c00},
                                                          {0x1p-24, 0x0001},
                                                          {0x1p-25, 0x0000},
                                                          {0x1.8p-25, 0x0001},
                                                          {0x1p-14, 0x0400},
                                                          {0x1.ff8p-15, 0x03ff},
                                                          {0x1.ffep-15, 0x0400},
                                                          {1.0 + 0x1p-11, 0x3c00},
                                                          {1.0 + 0x3p-11, 0x3c02},
                                                          {2.0 - 0x1p-12, 0x4000}}));
  CAPTURE(value);
  const auto scalar = kernel::ScalarType{.kind = kernel::ScalarType::Kind::kFloating,
                                         .bytes = 2,
                                         .lanes = 1,
                                         .data_type = kernel::DataType::kF16};

  const auto argument = MakeScalar(scalar, value);

  REQUIRE(argument.has_value());
  CHECK(Decode<uint16_t>(*argument) == bits);
}

TEST_CASE("MakeScalar rounds to bfloat16", "[device]") {
  const auto [value, bits] = GENERATE(table<double, int>(
      {{1.0, 0x3f80}, {1.0 + 0x1p-8, 0x3f80}, {1.0 + 0x3p-8, 0x3f82}, {-3.0, 0xc040}}));
  CAPTURE(value);
  const auto scalar = kernel::ScalarType{.kind = kernel::ScalarType::Kind::kFloating,
                                         .bytes = 2,
                                         .lanes = 1,
                                         .data_type = kernel::DataType::kBf16};

  const auto argument = MakeScalar(scalar, value);

  REQUIRE(argument.has_value());
  CHECK(Decode<uint16_t>(*argument) == bits);
}

}  // namespace mtmc::worker
