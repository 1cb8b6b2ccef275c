// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernel/graph/tensor_type.h"
#include "kernel/loops/scalar.h"

namespace mtmc::kernel {

// A tensor-valued expression: the element at given indices, one per dimension.
// Reading a value is one; so is any function of others. Cheap value type.
//
// What these functions require of shapes and indices they check with Require, as
// the operands may come from a malformed node.
struct Elements {
  TensorType type;
  std::function<ScalarPtr(const std::vector<ScalarPtr>& indices)> at;

  int rank() const { return static_cast<int>(type.shape.size()); }
};

// Elements of one constant everywhere.
Elements Constant(double value, DataType type, std::vector<int64_t> shape = {});
// Same elements converted.
Elements CastTo(const Elements& operand, DataType type);
// Broadcast to `shape` by PyTorch's rule; requires that the shapes are compatible.
Elements BroadcastTo(const Elements& operand, const std::vector<int64_t>& shape);
std::vector<int64_t> BroadcastShape(const std::vector<int64_t>& a, const std::vector<int64_t>& b);
// Element-wise function of broadcast operands; the result has `body`'s type.
using ScalarFunction = std::function<ScalarPtr(const std::vector<ScalarPtr>& operands)>;
Elements MapElements(const std::vector<Elements>& operands, const ScalarFunction& body);
// Same elements in row-major order under another shape, required to be of equal
// size.
Elements Reshape(const Elements& operand, std::vector<int64_t> shape);

// [N, ..., C] read as [N, C, ...].
Elements WithChannelsFirst(const Elements& elements);

// The type arithmetic is done in: f16 and bf16 compute as f32, whole numbers of less than
// 32 bits as i32. Their results wrap around where they are cast back.
DataType ComputeType(DataType type);

// `count` indices from `first`, which are required to be there.
std::vector<ScalarPtr> Part(const std::vector<ScalarPtr>& indices, int64_t first, int64_t count);

// Gives up on a node that is malformed, as at() and value() of the standard
// library do: LowerToLoops is where their exceptions end, and the node becomes
// opaque. For what those two cannot see.
void Require(bool holds);

// The first `rank` of what axes of [N, ..., C] have, in the order [N, C, ...]. Required to be
// there, two at least.
template <typename Value>
std::vector<Value> ChannelsFirst(std::vector<Value> axes, size_t rank) {
  Require(rank >= 2 && rank <= axes.size());
  const auto end = axes.begin() + static_cast<std::ptrdiff_t>(rank);
  std::rotate(axes.begin() + 1, end - 1, end);
  return axes;
}

// Requires every value to be at least `least` and at most 2^20: far above any model's
// window, while sums of products with an extent stay within 64 bits.
void RequireWindowValues(const std::vector<int64_t>& values, int64_t least);

}  // namespace mtmc::kernel
