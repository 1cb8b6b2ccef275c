// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernel/graph/tensor_type.h"
#include "kernel/loops/scalar.h"

namespace mtmc::kernel {

// Algebra of integer index expressions over axes with known extents: axis `a`
// takes the values 0 .. extents[a] - 1. Pure functions, thread-safe.

// Closed interval that holds every value of an expression; saturated at +-2^62.
struct IndexRange {
  int64_t low = 0;
  int64_t high = 0;

  bool Within(int64_t first, int64_t last) const { return low >= first && high <= last; }
};

// The full 64-bit range when nothing is known, as for a value read from memory.
IndexRange RangeOf(const ScalarPtr& index, std::span<const int64_t> extents);

// Equal expression in normal form: a sum of `coefficient * term` plus a
// constant, where a term is an axis, a read, or a quotient or remainder by a
// constant. Undoes what views do: with i in [0, 4096*64),
// `i / 64 * 64 + i % 64` becomes `i`. Equal expressions usually become
// identical. Leaves anything but sums, products, quotients and remainders by
// positive constants as they are, with simplified operands.
ScalarPtr SimplifyIndex(const ScalarPtr& index, std::span<const int64_t> extents);

// Row-major offset of an element, simplified.
ScalarPtr OffsetOf(const TensorType& type, std::span<const ScalarPtr> indices,
                   std::span<const int64_t> extents);

// Indices of an element from its row-major offset, simplified: the inverse of
// OffsetOf for offsets in range.
std::vector<ScalarPtr> IndicesOf(const TensorType& type, const ScalarPtr& offset,
                                 std::span<const int64_t> extents);

// How an index moves with one axis: index = base + stride * axis, with `base`
// free of the axis and a multiple of `alignment`. Absent when it is not affine
// in that axis.
struct AxisStride {
  int64_t stride = 0;
  int64_t alignment = 1;
};

std::optional<AxisStride> StrideAlong(const ScalarPtr& index, int axis,
                                      std::span<const int64_t> extents);

// Whether `index` depends on `axis`, reads included.
bool UsesAxis(const ScalarPtr& index, int axis);

}  // namespace mtmc::kernel
