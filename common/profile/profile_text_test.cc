// SPDX-License-Identifier: Apache-2.0
#include "common/profile/profile_text.h"

#include <catch2/catch.hpp>

#include "mtmc/v1/evaluation.pb.h"

namespace mtmc::profile {
namespace {

TEST_CASE("FormatMetric reads the unit off the name", "[profile]") {
  CHECK(FormatMetric("dram_throughput_ratio", 0.824) == "82 %");
  CHECK(FormatMetric("dram_bytes", 1.07e9) == "1.07 GB");
  CHECK(FormatMetric("fp32_flops", 2e12) == "2 TFLOP");
  CHECK(FormatMetric("counted_seconds", 12.5e-6) == "12.5 us");
  CHECK(FormatMetric("load_sectors_per_request", 4) == "4.0");
}

TEST_CASE("CounterLine shows the three largest stalls and no idle pipe", "[profile]") {
  const std::string line = CounterLine({{"dram_throughput_ratio", 0.8},
                                        {"tensor_pipe_ratio", 0},
                                        {"stall_long_scoreboard_ratio", 0.6},
                                        {"stall_barrier_ratio", 0.1},
                                        {"stall_mio_ratio", 0.2},
                                        {"stall_wait_ratio", 0.07},
                                        {"stall_lg_ratio", 0.01}});

  CHECK(line == "dram 80 %, stalls: long scoreboard 60 %, mio 20 %, barrier 10 %");
  CHECK(CounterLine({}).empty());
}

TEST_CASE("DescribeProfile is short, stable and longest first", "[profile]") {
  v1::Profile profile;
  CHECK(DescribeProfile(profile).empty());
  profile.set_summary("bound by memory");
  (*profile.mutable_metrics())["dram_throughput_ratio"] = 0.5;
  for (int i = 0; i < 40; ++i) {
    v1::KernelActivity& kernel = *profile.add_kernels();
    kernel.set_kernel(std::string(200, 'k') + std::to_string(i));
    kernel.set_seconds(1e-6 * (1 + i));
    kernel.set_share_ratio(0.025);
    kernel.set_blocks(132);
    kernel.set_threads_per_block(256);
    kernel.set_registers_per_thread(40);
    kernel.set_occupancy_ratio(0.75);
  }

  const std::string text = DescribeProfile(profile);

  CHECK(text.find("profile: bound by memory\ncounters: dram 50 %\n  kkk") == 0);
  CHECK(text.find("40 us, 132 blocks of 256, 40 registers, occupancy 75 %") != text.npos);
  CHECK(text.find("and 35 shorter ones") != text.npos);
  CHECK(text.size() < 1200);
  CHECK(text == DescribeProfile(profile));
}

}  // namespace
}  // namespace mtmc::profile
