// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/loops/loop.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {

// The iteration space that reductions share, seen as a matrix: one *row* per
// result element, one *column* per element that is reduced into it. Both are
// flat, in row-major order of a loop's output and reduction axes. Columns split
// into `outer` runs of `inner` elements between which the memory offset jumps.
struct RowSpace {
  int64_t rows = 1;
  int64_t outer = 1;
  int64_t inner = 1;
  // Rows whose elements are evenly spaced: offsets of rows 0 .. row_run - 1 have
  // one stride, and so on.
  int64_t row_run = 1;
  // Whether neighbouring columns, or neighbouring rows, are neighbours in memory.
  bool columns_are_contiguous = false;
  bool rows_are_contiguous = false;

  int64_t columns() const { return outer * inner; }
};

// The space of a reduction, as the reads of its body lie in memory.
RowSpace MakeRowSpace(const GroupView& view, const Loop& reduction);

// The axes of `reduction` at flat `row` and `column`, expressions over axes
// with `extents`.
std::vector<ScalarPtr> AxesAt(const Loop& reduction, const ScalarPtr& row, const ScalarPtr& column,
                              std::span<const int64_t> extents);

// Indices into a tensor of `type` that has one element per (row, column): those
// at which `reduction` reads a tensor of the same shape. Over axes 0 (row) and 1
// (column) with extents {rows, columns}. Absent when nothing tells.
std::optional<std::vector<ScalarPtr>> ElementIndices(const GroupView& view, const Loop& reduction,
                                                     const TensorType& type);

}  // namespace mtmc::kernel
