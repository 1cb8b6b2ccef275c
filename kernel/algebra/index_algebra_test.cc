// SPDX-License-Identifier: Apache-2.0
#include "kernel/algebra/index_algebra.h"

#include <catch2/catch.hpp>

#include "kernel/algebra/scalar_key.h"

namespace mtmc::kernel {
namespace {

TEST_CASE("SimplifyIndex undoes taking a flat index apart", "[emit]") {
  const std::vector<int64_t> extents = {4 * 64 * 48};
  const TensorType type{.shape = {4, 64, 48}};

  const std::vector<ScalarPtr> indices = IndicesOf(type, Axis(0), extents);

  CHECK(KeyOf(OffsetOf(type, indices, extents)) == KeyOf(Axis(0)));
}

TEST_CASE("SimplifyIndex sees through a view of another shape", "[emit]") {
  const std::vector<int64_t> extents = {96 * 32};
  const TensorType outer{.shape = {96, 32}};
  const TensorType inner{.shape = {8, 12, 32}};
  const ScalarPtr flat = OffsetOf(outer, IndicesOf(outer, Axis(0), extents), extents);

  const ScalarPtr offset = OffsetOf(inner, IndicesOf(inner, flat, extents), extents);

  CHECK(KeyOf(offset) == KeyOf(Axis(0)));
}

TEST_CASE("SimplifyIndex divides a block's number instead of the flat index", "[emit]") {
  // i = block * 256 + thread, and rows of 4096: a block lies within one row.
  const std::vector<int64_t> extents = {64, 256};
  const ScalarPtr i = Add(Mul(Axis(0), Index(256)), Axis(1));

  CHECK(KeyOf(SimplifyIndex(FloorDiv(i, 4096), extents)) ==
        KeyOf(SimplifyIndex(FloorDiv(Axis(0), 16), extents)));
  CHECK(StrideAlong(Mod(i, 4096), 1, extents)->stride == 1);
}

TEST_CASE("SimplifyIndex keeps the value of an expression", "[emit]") {
  const std::vector<int64_t> extents = {6, 10};
  const ScalarPtr flat = Add(Mul(Axis(0), Index(10)), Axis(1));
  const ScalarPtr index = GENERATE_COPY(
      FloorDiv(Add(flat, Index(3)), 4), Mod(Add(flat, Index(7)), 6), FloorDiv(Mod(flat, 30), 5),
      Add(Mul(FloorDiv(flat, 15), Index(15)), Mod(flat, 15)), Mod(FloorDiv(flat, 2), 3));
  const auto value = [](const ScalarPtr& root, int64_t a, int64_t b) {
    const std::vector<ScalarPtr> axes = {Index(a), Index(b)};
    return IntegerOf(*SimplifyIndex(SubstituteAxes(root, axes), {}));
  };

  const ScalarPtr simple = SimplifyIndex(index, extents);

  for (int64_t a = 0; a < 6; ++a) {
    for (int64_t b = 0; b < 10; ++b) CHECK(value(simple, a, b) == value(index, a, b));
  }
}

TEST_CASE("StrideAlong tells contiguous, fixed and scattered axes apart", "[emit]") {
  const std::vector<int64_t> extents = {16, 8};

  const auto contiguous = StrideAlong(Add(Mul(Axis(0), Index(8)), Axis(1)), 1, extents);
  CHECK(contiguous->stride == 1);
  CHECK(contiguous->alignment == 8);
  CHECK(StrideAlong(Axis(0), 1, extents)->stride == 0);
  CHECK_FALSE(StrideAlong(Mod(Axis(0), 3), 0, extents).has_value());
}

TEST_CASE("RangeOf bounds what an index can be", "[emit]") {
  const std::vector<int64_t> extents = {16};

  const IndexRange range = RangeOf(Sub(Mul(Axis(0), Index(2)), Index(3)), extents);

  CHECK(range.low == -3);
  CHECK(range.high == 27);
}

}  // namespace
}  // namespace mtmc::kernel
