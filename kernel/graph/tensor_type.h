// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::kernel {

// Element type of a tensor. Text names (`f32`, `bf16`, ...) are those of the
// program format.
enum class DataType { kF64, kF32, kF16, kBf16, kI64, kI32, kI16, kI8, kU8, kBool };

// Size of one element in bytes; a bool takes one.
int64_t SizeOf(DataType type);

// `f32` and so on.
std::string_view ToText(DataType type);

// Inverse of ToText; absent when `text` names no type.
std::optional<DataType> FindDataType(std::string_view text);

bool IsFloating(DataType type);

// Shape and element type of a dense row-major tensor. Value type.
struct TensorType {
  DataType data_type = DataType::kF32;
  // Outermost first; empty for a scalar tensor. Every extent is >= 0.
  std::vector<int64_t> shape;

  // Product of the extents; 1 for a scalar.
  int64_t elements() const;

  int64_t bytes() const { return elements() * SizeOf(data_type); }

  bool operator==(const TensorType&) const = default;
};

// `f32[16,4096]`; a scalar is `f32[]`.
std::string ToText(const TensorType& type);

// Inverse of ToText; absent when `text` is not a tensor type or its size in
// bytes does not fit 63 bits.
std::optional<TensorType> FindTensorType(std::string_view text);

}  // namespace mtmc::kernel
