// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace mtmc::worker {

// What one multiprocessor can hold at a time.
struct MultiprocessorLimits {
  int warp_size = 32;
  int max_threads = 0;
  int max_blocks = 0;
  int64_t registers = 0;
  int64_t shared_bytes = 0;
  // What the driver takes of `shared_bytes` for each block.
  int64_t reserved_shared_bytes_per_block = 0;
};

// What one launch asks for.
struct LaunchResources {
  int threads_per_block = 0;
  int registers_per_thread = 0;
  // Static plus dynamic.
  int64_t shared_bytes_per_block = 0;
};

// Resident warps over the most there can be, 0 to 1, by NVIDIA's rules for
// compute capability 7.0 to 9.0: registers come in units of 256 for a warp,
// warps of a block are spread over four partitions, shared memory comes in units
// of 128 bytes. 0 when the limits are unknown or a block does not fit.
double TheoreticalOccupancy(const MultiprocessorLimits& limits, const LaunchResources& launch);

}  // namespace mtmc::worker
