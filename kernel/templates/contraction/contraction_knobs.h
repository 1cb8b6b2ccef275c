// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernel/templates/knob_table.h"

namespace mtmc::kernel {

// A running sum loses terms that are small beside it. Those of more products than kLongestSum are
// sums of stretches of kSumStretch of them, so that the error hardly grows with the length.
inline constexpr int64_t kLongestSum = 8192;
inline constexpr int64_t kSumStretch = 1024;

// The knobs of a sum of products: a thread per element, or tiles of a block.
struct ContractionKnobs {
  int64_t tiled = 0;
  // Threads of a block, not tiled.
  int64_t block = 256;
  // A block's elements, its step along k, and a thread's elements (GPU).
  int64_t bm = 64;
  int64_t bn = 64;
  int64_t bk = 16;
  int64_t tm = 4;
  int64_t tn = 4;
  // Rows and vectors of columns of a thread (CPU).
  int64_t tr = 4;
  int64_t tc = 4;
};

const TypedKnobTable<ContractionKnobs>& ContractionKnobTable();

// Those worth timing first: the largest blocks that give every compute unit one.
Knobs StartingContractionKnobs(const GroupView& view, const EmitTarget& target);

}  // namespace mtmc::kernel
