// SPDX-License-Identifier: Apache-2.0
#include "kernel/view/row_space.h"

#include <algorithm>
#include <set>

#include "kernel/algebra/index_algebra.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {
namespace {

int64_t Product(std::span<const int64_t> extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

// Stride of an offset along each axis of the loop; absent when one is not affine.
std::optional<std::vector<int64_t>> StridesOf(const ScalarPtr& offset, const Loop& loop) {
  std::vector<int64_t> strides;
  for (size_t axis = 0; axis < loop.extents.size(); ++axis) {
    const auto stride = StrideAlong(offset, static_cast<int>(axis), loop.extents);
    if (!stride) return std::nullopt;
    strides.push_back(stride->stride);
  }
  return strides;
}

// Elements that change with the most axes tell how memory lies.
std::optional<std::vector<int64_t>> MainStrides(const GroupView& view, const Loop& loop) {
  std::optional<std::vector<int64_t>> best;
  int64_t best_span = 0;
  for (const ElementRead& read : ElementReads(view, loop.body, loop.extents)) {
    const auto strides = StridesOf(read.offset, loop);
    if (!strides) continue;
    int64_t span = 1;
    for (size_t axis = 0; axis < strides->size(); ++axis) {
      if ((*strides)[axis] != 0) span *= loop.extents[axis];
    }
    if (span > best_span) {
      best = strides;
      best_span = span;
    }
  }
  return best;
}

// Length and stride of the evenly spaced run that the last axes of [first, last)
// form together.
struct Run {
  int64_t length = 1;
  int64_t stride = 0;
};

Run LastRun(const std::vector<int64_t>& strides, const Loop& loop, int first, int last) {
  Run run;
  for (int axis = last - 1; axis >= first; --axis) {
    const int64_t extent = loop.extents[static_cast<size_t>(axis)];
    const int64_t stride = strides[static_cast<size_t>(axis)];
    if (extent == 1) continue;
    if (run.length == 1) {
      run = {extent, stride};
    } else if (stride == run.stride * run.length) {
      run.length *= extent;
    } else {
      break;
    }
  }
  return run;
}

// Whether an offset with these strides reaches every element exactly once.
bool IsDense(const std::vector<int64_t>& strides, const Loop& loop) {
  std::vector<std::pair<int64_t, int64_t>> axes;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    if (loop.extents[axis] != 1) axes.emplace_back(strides[axis], loop.extents[axis]);
  }
  std::sort(axes.begin(), axes.end());
  int64_t expected = 1;
  for (const auto& [stride, extent] : axes) {
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

}  // namespace

RowSpace MakeRowSpace(const GroupView& view, const Loop& reduction) {
  const int outputs = reduction.output_axes();
  const int axes = static_cast<int>(reduction.extents.size());
  const std::span<const int64_t> extents(reduction.extents);
  RowSpace space;
  space.rows = Product(extents.first(static_cast<size_t>(outputs)));
  const int64_t columns = Product(extents.subspan(static_cast<size_t>(outputs)));
  space.inner = columns;
  const auto strides = MainStrides(view, reduction);
  if (!strides) return space;
  const Run column_run = LastRun(*strides, reduction, outputs, axes);
  const Run row_run = LastRun(*strides, reduction, 0, outputs);
  space.inner = column_run.length;
  space.outer = columns / space.inner;
  space.row_run = row_run.length;
  space.columns_are_contiguous = column_run.stride == 1;
  space.rows_are_contiguous = row_run.stride == 1;
  return space;
}

std::vector<ScalarPtr> AxesAt(const Loop& reduction, const ScalarPtr& row, const ScalarPtr& column,
                              std::span<const int64_t> extents) {
  const auto split = reduction.extents.begin() + reduction.output_axes();
  const TensorType outputs{DataType::kF32, {reduction.extents.begin(), split}};
  const TensorType reduced{DataType::kF32, {split, reduction.extents.end()}};
  std::vector<ScalarPtr> axes = IndicesOf(outputs, row, extents);
  for (ScalarPtr& axis : IndicesOf(reduced, column, extents)) axes.push_back(std::move(axis));
  return axes;
}

std::optional<std::vector<ScalarPtr>> ElementIndices(const GroupView& view, const Loop& reduction,
                                                     const TensorType& type) {
  const RowSpace space = MakeRowSpace(view, reduction);
  if (type.elements() != space.rows * space.columns()) return std::nullopt;
  const std::vector<int64_t> extents = {space.rows, space.columns()};
  const auto indices_of = [&](const std::string& tensor, const std::vector<ScalarPtr>& own,
                              const ScalarPtr& offset) -> std::optional<std::vector<ScalarPtr>> {
    if (view.nest->types.find(tensor)->second.shape != type.shape) return std::nullopt;
    const auto strides = StridesOf(offset, reduction);
    if (!strides || !IsDense(*strides, reduction)) return std::nullopt;
    const std::vector<ScalarPtr> axes = AxesAt(reduction, Axis(0), Axis(1), extents);
    std::vector<ScalarPtr> indices;
    for (const ScalarPtr& index : own) {
      indices.push_back(SimplifyIndex(SubstituteAxes(index, axes), extents));
    }
    return indices;
  };
  // What the body reads directly, then what lies behind the maps it reads.
  for (const Scalar* read : Reads(reduction.body)) {
    const TensorType& own = view.nest->types.find(read->tensor)->second;
    const ScalarPtr offset = OffsetOf(own, read->operands, reduction.extents);
    if (auto found = indices_of(read->tensor, read->operands, offset)) return found;
  }
  for (const ElementRead& read : ElementReads(view, reduction.body, reduction.extents)) {
    if (auto found = indices_of(read.tensor, read.indices, read.offset)) return found;
  }
  return std::nullopt;
}

}  // namespace mtmc::kernel
