// SPDX-License-Identifier: Apache-2.0
#include "kernel/graph/tensor_type.h"

#include <array>
#include <limits>

#include "absl/strings/ascii.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// PyTorch itself allows 64 dimensions; KernelBench's largest rank is 6.
constexpr size_t kMaxRank = 64;

struct DataTypeRow {
  DataType type;
  std::string_view text;
  int64_t bytes;
  bool is_floating;
};

// In the order of the enumerators.
constexpr std::array<DataTypeRow, 10> kDataTypes = {{
    {DataType::kF64, "f64", 8, true},
    {DataType::kF32, "f32", 4, true},
    {DataType::kF16, "f16", 2, true},
    {DataType::kBf16, "bf16", 2, true},
    {DataType::kI64, "i64", 8, false},
    {DataType::kI32, "i32", 4, false},
    {DataType::kI16, "i16", 2, false},
    {DataType::kI8, "i8", 1, false},
    {DataType::kU8, "u8", 1, false},
    {DataType::kBool, "bool", 1, false},
}};

const DataTypeRow& Row(DataType type) { return kDataTypes.at(static_cast<size_t>(type)); }

// Extents are digits only: no sign, no blanks inside.
std::optional<int64_t> FindExtent(std::string_view text) {
  if (text.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(text.front()))) {
    return std::nullopt;
  }
  return FindInteger(text);
}

bool FitsMemory(const TensorType& type) {
  // An extent of zero makes the product zero, yet the others must not overflow:
  // strides are computed from them.
  int64_t bytes = SizeOf(type.data_type);
  for (const int64_t extent : type.shape) {
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)) return false;
  }
  return true;
}

}  // namespace

int64_t SizeOf(DataType type) { return Row(type).bytes; }

std::string_view ToText(DataType type) { return Row(type).text; }

bool IsFloating(DataType type) { return Row(type).is_floating; }

std::optional<DataType> FindDataType(std::string_view text) {
  for (const DataTypeRow& row : kDataTypes) {
    if (row.text == text) return row.type;
  }
  return std::nullopt;
}

int64_t TensorType::elements() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

std::string ToText(const TensorType& type) {
  return Concat(ToText(type.data_type), "[", Join(type.shape, ","), "]");
}

std::optional<TensorType> FindTensorType(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']') return std::nullopt;
  const std::optional<DataType> data_type = FindDataType(text.substr(0, open));
  if (!data_type) return std::nullopt;
  TensorType type{.data_type = *data_type};
  const std::string_view extents = text.substr(open + 1, text.size() - open - 2);
  if (extents.empty()) return type;
  for (const std::string_view part : Split(extents, ',')) {
    const std::optional<int64_t> extent = FindExtent(Trim(part));
    if (!extent || type.shape.size() == kMaxRank) return std::nullopt;
    type.shape.push_back(*extent);
  }
  if (!FitsMemory(type)) return std::nullopt;
  return type;
}

}  // namespace mtmc::kernel
