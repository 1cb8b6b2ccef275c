// SPDX-License-Identifier: Apache-2.0
#include "kernel/program/scalar_type.h"

#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

struct TypeRow {
  std::string_view name;
  ScalarType::Kind kind;
  int bytes;
  DataType data_type = DataType::kF32;
};

constexpr ScalarType::Kind kSigned = ScalarType::Kind::kSigned;
constexpr ScalarType::Kind kUnsigned = ScalarType::Kind::kUnsigned;
constexpr ScalarType::Kind kFloating = ScalarType::Kind::kFloating;

// `long` has 8 bytes in OpenCL C and in CUDA on Linux; plain char is signed.
constexpr TypeRow kTypes[] = {
    {"bool", ScalarType::Kind::kBool, 1},
    {"char", kSigned, 1},
    {"signed char", kSigned, 1},
    {"int8_t", kSigned, 1},
    {"unsigned char", kUnsigned, 1},
    {"uchar", kUnsigned, 1},
    {"uint8_t", kUnsigned, 1},
    {"short", kSigned, 2},
    {"int16_t", kSigned, 2},
    {"unsigned short", kUnsigned, 2},
    {"ushort", kUnsigned, 2},
    {"uint16_t", kUnsigned, 2},
    {"int", kSigned, 4},
    {"int32_t", kSigned, 4},
    {"unsigned int", kUnsigned, 4},
    {"uint", kUnsigned, 4},
    {"uint32_t", kUnsigned, 4},
    {"long", kSigned, 8},
    {"long long", kSigned, 8},
    {"int64_t", kSigned, 8},
    {"ptrdiff_t", kSigned, 8},
    {"longlong", kSigned, 8},
    {"unsigned long", kUnsigned, 8},
    {"unsigned long long", kUnsigned, 8},
    {"ulong", kUnsigned, 8},
    {"uint64_t", kUnsigned, 8},
    {"size_t", kUnsigned, 8},
    {"ulonglong", kUnsigned, 8},
    {"double", kFloating, 8, DataType::kF64},
    {"float", kFloating, 4, DataType::kF32},
    {"half", kFloating, 2, DataType::kF16},
    {"__half", kFloating, 2, DataType::kF16},
    {"__nv_bfloat16", kFloating, 2, DataType::kBf16},
    {"nv_bfloat16", kFloating, 2, DataType::kBf16},
};

}  // namespace

std::optional<ScalarType> FindScalarType(std::string_view type) {
  const auto find = [](std::string_view name, int lanes) -> std::optional<ScalarType> {
    for (const TypeRow& row : kTypes) {
      if (row.name == name) {
        return ScalarType{
            .kind = row.kind, .bytes = row.bytes, .lanes = lanes, .data_type = row.data_type};
      }
    }
    return std::nullopt;
  };
  if (std::optional<ScalarType> scalar = find(type, 1)) return scalar;
  // Vectors: `float4`, `uchar16`, `half2`, `__nv_bfloat162`.
  for (const std::string_view suffix : {"16", "2", "3", "4", "8"}) {
    if (type.size() <= suffix.size() || type.substr(type.size() - suffix.size()) != suffix)
      continue;
    const int lanes = static_cast<int>(FindInteger(suffix).value_or(1));
    if (std::optional<ScalarType> vector =
            find(type.substr(0, type.size() - suffix.size()), lanes)) {
      return vector;
    }
  }
  return std::nullopt;
}

}  // namespace mtmc::kernel
