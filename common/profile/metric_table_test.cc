// SPDX-License-Identifier: Apache-2.0
#include "common/profile/metric_table.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace mtmc::profile {
namespace {

using Catch::Matchers::WithinRel;

TEST_CASE("Every metric has a name of its own that ends in a unit", "[profile]") {
  std::set<std::string_view> names;
  for (const Metric& metric : MetricTable()) {
    INFO(std::string(metric.name));
    CHECK(names.insert(metric.name).second);
    const bool has_unit = metric.name.ends_with("_bytes") || metric.name.ends_with("_flops") ||
                          metric.name.ends_with("_ratio") || metric.name.ends_with("_seconds") ||
                          metric.name.ends_with("_count") || metric.name.ends_with("_per_request");
    CHECK(has_unit);
    CHECK_FALSE(metric.numerator.empty());
    CHECK_FALSE(metric.meaning.empty());
  }
  CHECK(FindMetric("dram_bytes") != nullptr);
  CHECK(FindMetric("speed") == nullptr);
}

TEST_CASE("Derive weighs sums, divides, and leaves out what was not counted", "[profile]") {
  const Values metrics = Derive({{"dram__bytes_read.sum", 3e9},
                                 {"dram__bytes_write.sum", 1e9},
                                 {"dram__throughput.avg.pct_of_peak_sustained_elapsed", 80},
                                 {"smsp__warps_active.sum", 200},
                                 {"smsp__warps_issue_stalled_barrier.sum", 50},
                                 {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 0},
                                 {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 0}});

  CHECK_THAT(metrics.at("dram_bytes"), WithinRel(4e9, 1e-12));
  CHECK_THAT(metrics.at("dram_throughput_ratio"), WithinRel(0.8, 1e-12));
  CHECK_THAT(metrics.at("stall_barrier_ratio"), WithinRel(0.25, 1e-12));
  CHECK_FALSE(metrics.contains("load_sectors_per_request"));
  CHECK_FALSE(metrics.contains("fp32_flops"));
}

TEST_CASE("A fused multiply-add is two operations", "[profile]") {
  const Values metrics = Derive({{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 10},
                                 {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 3},
                                 {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 4}});

  CHECK(metrics.at("fp32_flops") == 27);
}

TEST_CASE("Merge adds sums and weighs percentages by duration", "[profile]") {
  const std::array<Values, 3> kernels = {
      Values{{"gpu__time_duration.sum", 100},
             {"dram__bytes_read.sum", 10},
             {"dram__throughput.avg.pct_of_peak_sustained_elapsed", 90}},
      Values{{"gpu__time_duration.sum", 300},
             {"dram__bytes_read.sum", 20},
             {"dram__throughput.avg.pct_of_peak_sustained_elapsed", 10}},
      Values{{"gpu__time_duration.sum", 50},
             {"dram__throughput.avg.pct_of_peak_sustained_elapsed", std::nan("")}}};

  const Values merged = Merge(kernels);

  CHECK(merged.at("gpu__time_duration.sum") == 450);
  CHECK(merged.at("dram__bytes_read.sum") == 30);
  CHECK_THAT(merged.at("dram__throughput.avg.pct_of_peak_sustained_elapsed"), WithinRel(30, 1e-12));
}

TEST_CASE("The counter sets are disjoint", "[profile]") {
  std::set<std::string> names;
  size_t total = 0;
  for (const CounterSet set :
       {CounterSet::kHardware, CounterSet::kTensor, CounterSet::kInstrumented}) {
    for (const std::string& name : CountersOf(set)) {
      ++total;
      names.insert(name);
    }
  }
  CHECK(names.size() == total);
  CHECK(total > 25);
}

TEST_CASE("The documentation lists every metric with its meaning", "[profile]") {
  std::ifstream file(MTMC_TEST_DATA "/profile.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const Metric& metric : MetricTable()) {
    const std::string row = "| `" + std::string(metric.name) + "` | " + std::string(metric.meaning);
    INFO(row);
    CHECK(text.find(row) != std::string::npos);
  }
}

}  // namespace
}  // namespace mtmc::profile
