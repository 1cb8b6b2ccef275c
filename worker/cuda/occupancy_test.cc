// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/occupancy.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {
namespace {

using Catch::Matchers::WithinRel;

// Compute capability 9.0.
MultiprocessorLimits Hopper() {
  return {.max_threads = 2048,
          .max_blocks = 32,
          .registers = 65536,
          .shared_bytes = 233472,
          .reserved_shared_bytes_per_block = 1024};
}

TEST_CASE("TheoreticalOccupancy follows the scarcest resource", "[cuda]") {
  const auto limits = Hopper();

  // 2048 / 256 = 8 blocks of 32 registers fill the multiprocessor.
  CHECK_THAT(TheoreticalOccupancy(limits, {256, 32, 0}), WithinRel(1.0, 1e-12));
  // 33 registers are 1280 for a warp: 48 warps of whole partitions, 6 blocks.
  CHECK_THAT(TheoreticalOccupancy(limits, {256, 33, 0}), WithinRel(0.75, 1e-12));
  // 255 registers: 8 warps.
  CHECK_THAT(TheoreticalOccupancy(limits, {128, 255, 0}), WithinRel(8.0 / 64, 1e-12));
  // 32 blocks of one warp.
  CHECK_THAT(TheoreticalOccupancy(limits, {32, 16, 0}), WithinRel(0.5, 1e-12));
  // Two blocks of 100 KB.
  CHECK_THAT(TheoreticalOccupancy(limits, {256, 32, 102400}), WithinRel(0.25, 1e-12));
  // One warp too many for a second block.
  CHECK_THAT(TheoreticalOccupancy(limits, {1024 + 32 - 64, 32, 0}), WithinRel(62.0 / 64, 1e-12));
}

TEST_CASE("TheoreticalOccupancy is 0 where it is not known", "[cuda]") {
  CHECK(TheoreticalOccupancy({}, {256, 32, 0}) == 0);
  CHECK(TheoreticalOccupancy(Hopper(), {}) == 0);
  CHECK(TheoreticalOccupancy(Hopper(), {1024, 255, 0}) == 0);
}

}  // namespace
}  // namespace mtmc::worker
