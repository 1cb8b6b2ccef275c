// SPDX-License-Identifier: Apache-2.0
#include "kernel/templates/pointwise/turned_order.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "kernel/algebra/index_algebra.h"

namespace mtmc::kernel {
namespace {

// Fewer neighbours than these, along which inputs lie, leave most of a warp reading elsewhere.
constexpr int64_t kLeastNeighbours = 16;

// As many as a warp has, or up to twice as many, where the extent can be cut so.
constexpr int64_t kWarp = 32;

int64_t TileOf(int64_t extent) {
  for (int64_t tile = kWarp; tile <= 2 * kWarp; ++tile) {
    if (extent % tile == 0) return tile;
  }
  for (int64_t tile = kWarp; tile >= kWarp / 2; --tile) {
    if (extent % tile == 0) return tile;
  }
  return extent;
}

// A read: by how many elements it moves with each axis, and the bytes of its tensor.
struct Movement {
  std::vector<int64_t> strides;
  int64_t bytes = 0;
};

// Absent where it does not move evenly.
std::optional<std::vector<int64_t>> StridesOf(const ElementRead& read,
                                              const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const auto along = StrideAlong(read.offset, static_cast<int>(axis), shape);
    if (!along || along->stride < 0) return std::nullopt;
    strides.push_back(shape[axis] == 1 ? 0 : along->stride);
  }
  return strides;
}

// Those of all even reads; absent where outputs differ in shape.
std::optional<std::vector<Movement>> MovementsOf(const GroupView& view,
                                                 const std::vector<int64_t>& shape) {
  std::vector<Movement> movements;
  for (const std::string& value : view.outputs) {
    const TensorType& type = TypeOf(view, value);
    if (type.shape != shape) return std::nullopt;
    const ScalarPtr root = Read(value, Axes(static_cast<int>(shape.size())), type.data_type);
    for (const ElementRead& read : ElementReads(view, root, shape)) {
      std::optional<std::vector<int64_t>> strides = StridesOf(read, shape);
      if (!strides) continue;
      const TensorType& source = TypeOf(view, read.tensor);
      movements.push_back({*std::move(strides), source.elements() * SizeOf(source.data_type)});
    }
  }
  return movements;
}

// Makes neighbouring axes one where all move evenly over both, and leaves those of one element out.
void Merge(std::vector<int64_t>& extents, std::vector<Movement>& movements) {
  for (size_t axis = extents.size(); axis-- > 0;) {
    const bool is_last = axis + 1 == extents.size();
    const auto is_one = [&](const Movement& each) {
      return each.strides[axis] == each.strides[axis + 1] * extents[axis + 1];
    };
    if (extents[axis] > 1 &&
        (is_last || !std::all_of(movements.begin(), movements.end(), is_one))) {
      continue;
    }
    if (extents[axis] > 1) extents[axis + 1] *= extents[axis];
    extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(axis));
    for (Movement& each : movements) {
      each.strides.erase(each.strides.begin() + static_cast<std::ptrdiff_t>(axis));
    }
  }
}

}  // namespace

TurnedOrder FindTurnedOrder(const GroupView& view) {
  TurnedOrder turned{.extents = TypeOf(view, view.outputs[0]).shape};
  std::optional<std::vector<Movement>> movements = MovementsOf(view, turned.extents);
  if (!movements || movements->empty()) return {};
  Merge(turned.extents, *movements);
  if (turned.extents.size() < 2) return {};
  const auto most =
      std::max_element(movements->begin(), movements->end(),
                       [](const Movement& a, const Movement& b) { return a.bytes < b.bytes; });
  turned.order.resize(turned.extents.size());
  std::iota(turned.order.begin(), turned.order.end(), 0);
  std::stable_sort(turned.order.begin(), turned.order.end(), [&most](int a, int b) {
    return most->strides[static_cast<size_t>(a)] > most->strides[static_cast<size_t>(b)];
  });
  const auto last = static_cast<size_t>(turned.order.back());
  turned.tile = TileOf(turned.extents[last]);
  const bool has_run = most->strides[last] == 1 && turned.extents[last] >= kLeastNeighbours;
  return has_run && last + 1 != turned.extents.size() ? turned : TurnedOrder();
}

}  // namespace mtmc::kernel
