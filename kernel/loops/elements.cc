// SPDX-License-Identifier: Apache-2.0
#include "kernel/loops/elements.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "kernel/loops/loop_check.h"

namespace mtmc::kernel {
namespace {

// Row-major strides.
std::vector<int64_t> StridesOf(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides.at(i - 1) = strides.at(i) * shape.at(i);
  return strides;
}

// Indices within `shape` of the element at `offset`.
void AppendUnraveled(const ScalarPtr& offset, const std::vector<int64_t>& shape,
                     std::vector<ScalarPtr>& indices) {
  const std::vector<int64_t> strides = StridesOf(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    ScalarPtr index = FloorDiv(offset, strides.at(i));
    // The leading quotient is in range by itself.
    const bool is_leading = std::all_of(shape.begin(), shape.begin() + static_cast<int64_t>(i),
                                        [](int64_t extent) { return extent == 1; });
    if (shape.at(i) == 1) {
      index = Index(0);
    } else if (!is_leading) {
      index = Mod(index, shape.at(i));
    }
    indices.push_back(std::move(index));
  }
}

ScalarPtr Ravel(const std::vector<ScalarPtr>& indices, const std::vector<int64_t>& shape) {
  const std::vector<int64_t> strides = StridesOf(shape);
  ScalarPtr offset = Index(0);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape.at(i) != 1) offset = Add(offset, Mul(indices.at(i), Index(strides.at(i))));
  }
  return offset;
}

}  // namespace

Elements Constant(double value, DataType type, std::vector<int64_t> shape) {
  return {{type, std::move(shape)},
          [value, type](const std::vector<ScalarPtr>&) { return Literal(value, type); }};
}

Elements CastTo(const Elements& operand, DataType type) {
  if (operand.type.data_type == type) return operand;
  return {{type, operand.type.shape},
          [at = operand.at, type](const std::vector<ScalarPtr>& indices) {
            return Cast(at(indices), type);
          }};
}

std::vector<int64_t> BroadcastShape(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const std::vector<int64_t>& longer = a.size() >= b.size() ? a : b;
  const std::vector<int64_t>& shorter = a.size() >= b.size() ? b : a;
  std::vector<int64_t> shape = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    if (shape.at(offset + i) == 1) shape.at(offset + i) = shorter[i];
    Require(shorter[i] == 1 || shorter[i] == shape.at(offset + i));
  }
  Require(IsWithinLimits(shape));
  return shape;
}

Elements BroadcastTo(const Elements& operand, const std::vector<int64_t>& shape) {
  if (operand.type.shape == shape) return operand;
  Require(BroadcastShape(operand.type.shape, shape) == shape);
  return {{operand.type.data_type, shape}, [operand](const std::vector<ScalarPtr>& indices) {
            const size_t rank = operand.type.shape.size();
            std::vector<ScalarPtr> own =
                Part(indices, static_cast<int64_t>(indices.size() - rank), operand.rank());
            for (size_t i = 0; i < rank; ++i) {
              if (operand.type.shape.at(i) == 1) own.at(i) = Index(0);
            }
            return operand.at(own);
          }};
}

Elements MapElements(const std::vector<Elements>& operands, const ScalarFunction& body) {
  std::vector<int64_t> shape;
  for (const Elements& operand : operands) shape = BroadcastShape(shape, operand.type.shape);
  std::vector<Elements> wide;
  std::vector<ScalarPtr> probe;
  for (const Elements& operand : operands) {
    wide.push_back(BroadcastTo(operand, shape));
    probe.push_back(Read("_", {}, operand.type.data_type));
  }
  const DataType type = body(probe)->type;
  return {{type, shape}, [wide = std::move(wide), body](const std::vector<ScalarPtr>& indices) {
            std::vector<ScalarPtr> values;
            for (const Elements& operand : wide) values.push_back(operand.at(indices));
            return body(values);
          }};
}

Elements Reshape(const Elements& operand, std::vector<int64_t> shape) {
  if (operand.type.shape == shape) return operand;
  const std::vector<int64_t> from = operand.type.shape;
  Require(operand.type.elements() == TensorType{operand.type.data_type, shape}.elements());
  return {{operand.type.data_type, shape},
          [operand, from, shape](const std::vector<ScalarPtr>& indices) {
            // Dimensions are matched in the smallest groups of equal size, so that
            // a kept dimension keeps its plain index.
            std::vector<ScalarPtr> source;
            size_t i = 0;
            size_t j = 0;
            while (i < from.size() || j < shape.size()) {
              const size_t first_i = i;
              const size_t first_j = j;
              int64_t size_from = i < from.size() ? from.at(i++) : 1;
              int64_t size_to = j < shape.size() ? shape.at(j++) : 1;
              while (size_from != size_to) {
                if (size_from < size_to && i < from.size()) {
                  size_from *= from.at(i++);
                } else if (j < shape.size()) {
                  size_to *= shape.at(j++);
                } else {
                  break;
                }
              }
              const auto part = [](const auto& list, size_t begin, size_t end) {
                return std::decay_t<decltype(list)>(list.begin() + static_cast<int64_t>(begin),
                                                    list.begin() + static_cast<int64_t>(end));
              };
              const ScalarPtr offset = Ravel(part(indices, first_j, j), part(shape, first_j, j));
              AppendUnraveled(offset, part(from, first_i, i), source);
            }
            return operand.at(source);
          }};
}

std::vector<ScalarPtr> Part(const std::vector<ScalarPtr>& indices, int64_t first, int64_t count) {
  std::vector<ScalarPtr> part;
  for (int64_t i = first; i < first + count; ++i) {
    part.push_back(indices.at(static_cast<size_t>(i)));
  }
  return part;
}

void Require(bool holds) {
  const std::optional<bool> held = holds ? std::optional<bool>(true) : std::nullopt;
  static_cast<void>(held.value());
}

void RequireWindowValues(const std::vector<int64_t>& values, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 20;
  for (const int64_t value : values) Require(value >= least && value <= kMost);
}

Elements WithChannelsFirst(const Elements& elements) {
  const std::vector<int64_t>& shape = elements.type.shape;
  return {{elements.type.data_type, ChannelsFirst(shape, shape.size())},
          [elements](std::vector<ScalarPtr> indices) {
            std::rotate(indices.begin() + 1, indices.begin() + 2, indices.end());
            return elements.at(indices);
          }};
}

DataType ComputeType(DataType type) {
  switch (type) {
    case DataType::kF16:
    case DataType::kBf16:
      return DataType::kF32;
    case DataType::kU8:
    case DataType::kI8:
    case DataType::kI16:
      return DataType::kI32;
    default:
      return type;
  }
}

}  // namespace mtmc::kernel
