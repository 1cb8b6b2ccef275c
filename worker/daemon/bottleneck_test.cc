// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/bottleneck.h"

#include <catch2/catch.hpp>

namespace mtmc::worker {
namespace {

TEST_CASE("A busy part is the bottleneck, with what it wastes", "[worker]") {
  const Bottleneck found = FindBottleneck({{"dram_throughput_ratio", 0.82},
                                           {"l2_throughput_ratio", 0.65},
                                           {"fma_pipe_ratio", 0.1},
                                           {"load_used_ratio", 0.125},
                                           {"stall_long_scoreboard_ratio", 0.7}});

  CHECK(found.limit == v1::Profile::LIMIT_MEMORY);
  CHECK(found.reason ==
        "device memory is at 82 % of its peak, loads use 4 of the 32 bytes of a sector");
}

TEST_CASE("Tensor cores excuse busy shared memory", "[worker]") {
  const Bottleneck found =
      FindBottleneck({{"tensor_pipe_ratio", 0.7}, {"shared_throughput_ratio", 0.9}});

  CHECK(found.limit == v1::Profile::LIMIT_COMPUTE);
  CHECK(found.reason == "the tensor pipe is at 70 % of its peak");
}

TEST_CASE("Where nothing is busy, the longest wait is named", "[worker]") {
  const Bottleneck found = FindBottleneck({{"dram_throughput_ratio", 0.2},
                                           {"sm_active_ratio", 0.95},
                                           {"warps_active_ratio", 0.12},
                                           {"stall_barrier_ratio", 0.4},
                                           {"stall_long_scoreboard_ratio", 0.3}});

  CHECK(found.limit == v1::Profile::LIMIT_LATENCY);
  CHECK(found.reason ==
        "no part is busy; warps wait at barriers in 40 % of their time, "
        "only 12 % of the warps are resident");
}

TEST_CASE("An empty device is named before any wait", "[worker]") {
  const Bottleneck found =
      FindBottleneck({{"sm_active_ratio", 0.2}, {"stall_long_scoreboard_ratio", 0.9}});

  CHECK(found.reason == "the multiprocessors have work in only 20 % of the time");
}

TEST_CASE("At most two remarks follow, most telling first", "[worker]") {
  const Bottleneck found = FindBottleneck({{"fma_pipe_ratio", 0.8},
                                           {"load_sectors_per_request", 32},
                                           {"local_bytes", 1e6},
                                           {"dram_bytes", 2e6},
                                           {"shared_throughput_ratio", 0.3},
                                           {"shared_conflict_ratio", 0.9}});

  CHECK(found.reason ==
        "the FP32 pipe is at 80 % of its peak, a warp's load touches 32 sectors, "
        "spills and local arrays move 1 MB");
}

TEST_CASE("Without counters there is no bottleneck", "[worker]") {
  CHECK(FindBottleneck({}).limit == v1::Profile::LIMIT_UNSPECIFIED);
}

}  // namespace
}  // namespace mtmc::worker
