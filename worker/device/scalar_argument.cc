// SPDX-License-Identifier: Apache-2.0
#include "worker/device/scalar_argument.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace mtmc::worker {
namespace {

template <typename T>
ScalarArgument Encode(T value) {
  ScalarArgument argument;
  argument.bytes = sizeof value;
  std::memcpy(argument.value.data(), &value, sizeof value);
  return argument;
}

// Upper half of binary32, rounded to nearest even; a NaN stays one.
uint16_t ToBf16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<uint16_t>(rounded >> 16);
}

// IEEE binary16, rounded to nearest even.
uint16_t ToF16(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return 0x7e00;
  const double magnitude = std::fabs(value);
  // 65520 is halfway between the largest half and the next power of two.
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // Below 2^-14 all numbers share the spacing 2^-24.
  const int spacing = std::max(exponent - 11, -24);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -spacing)));
  // A mantissa that rounds up to 2^11 carries into the exponent by itself.
  const uint32_t bits =
      spacing == -24 ? units : static_cast<uint32_t>(spacing + 24) * 1024U + units;
  return static_cast<uint16_t>(sign | bits);
}

ScalarArgument EncodeReal(const kernel::ScalarType& type, double value) {
  switch (type.data_type) {
    case kernel::DataType::kF64:
      return Encode(value);
    case kernel::DataType::kF16:
      return Encode(ToF16(value));
    case kernel::DataType::kBf16:
      return Encode(ToBf16(static_cast<float>(value)));
    default:
      return Encode(static_cast<float>(value));
  }
}

ScalarArgument EncodeInteger(int bytes, int64_t value) {
  switch (bytes) {
    case 1:
      return Encode(static_cast<int8_t>(value));
    case 2:
      return Encode(static_cast<int16_t>(value));
    case 4:
      return Encode(static_cast<int32_t>(value));
    default:
      return Encode(value);
  }
}

}  // namespace

std::optional<ScalarArgument> MakeScalar(const kernel::ScalarType& type,
                                         std::variant<int64_t, double> value) {
  using Kind = kernel::ScalarType::Kind;
  if (type.lanes != 1) return std::nullopt;
  const int64_t* integer = std::get_if<int64_t>(&value);
  if (type.kind == Kind::kFloating) {
    return EncodeReal(type, integer ? static_cast<double>(*integer) : std::get<double>(value));
  }
  if (!integer) return std::nullopt;
  if (type.kind == Kind::kBool) return EncodeInteger(1, *integer != 0);
  return EncodeInteger(type.bytes, *integer);
}

}  // namespace mtmc::worker
