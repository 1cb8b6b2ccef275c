// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/loops/loop.h"

namespace mtmc::kernel {

// Whether every extent, and the number of points of the space they span, is of
// a size that index arithmetic holds: 2^31 and 2^48, where the largest tensors
// of a device have 2^37 elements. False for a negative extent.
bool IsWithinLimits(const std::vector<int64_t>& extents);

// Whether a loop that is not opaque keeps what its readers rely on:
//   1. results and types are parallel, and each type's shape is that of the
//      output axes; the space is within 2^56 points, each extent within limits,
//      and no extent is 0 but of a constant;
//   2. body, or both factors of a contraction, are there, and every operator has
//      its number of operands, of types that go together;
//   3. an axis is one of the loop's; a read is of a value of `nest`, in its type
//      and with one index per dimension; nothing divides by the integer 0.
bool IsSound(const Loop& loop, const LoopNest& nest);

}  // namespace mtmc::kernel
