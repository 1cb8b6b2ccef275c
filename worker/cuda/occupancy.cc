// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/occupancy.h"

#include <algorithm>

namespace mtmc::worker {
namespace {

constexpr int64_t kRegisterUnit = 256;
constexpr int64_t kSharedUnit = 128;
constexpr int64_t kPartitions = 4;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

double TheoreticalOccupancy(const MultiprocessorLimits& limits, const LaunchResources& launch) {
  if (limits.max_threads <= 0 || limits.warp_size <= 0 || launch.threads_per_block <= 0) return 0;
  const int64_t most_warps = limits.max_threads / limits.warp_size;
  const int64_t warps =
      RoundUp(launch.threads_per_block, limits.warp_size) / int64_t{limits.warp_size};
  int64_t blocks = most_warps / warps;
  if (limits.max_blocks > 0) blocks = std::min<int64_t>(blocks, limits.max_blocks);
  if (limits.registers > 0 && launch.registers_per_thread > 0) {
    const int64_t registers_of_warp =
        RoundUp(int64_t{launch.registers_per_thread} * limits.warp_size, kRegisterUnit);
    const int64_t warps_of_registers =
        limits.registers / registers_of_warp / kPartitions * kPartitions;
    blocks = std::min(blocks, warps_of_registers / warps);
  }
  if (limits.shared_bytes > 0) {
    const int64_t shared_of_block = RoundUp(
        launch.shared_bytes_per_block + limits.reserved_shared_bytes_per_block, kSharedUnit);
    if (shared_of_block > 0) blocks = std::min(blocks, limits.shared_bytes / shared_of_block);
  }
  return static_cast<double>(blocks * warps) / static_cast<double>(most_warps);
}

}  // namespace mtmc::worker
