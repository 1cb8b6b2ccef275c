// SPDX-License-Identifier: Apache-2.0
#include "common/profile/metric_table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace mtmc::profile {
namespace {

constexpr std::string_view kDuration = "gpu__time_duration.sum";

// CUPTI's percentages become ratios.
constexpr double kPercent = 0.01;

// A sector is the unit that caches and memory move.
constexpr double kSectorBytes = 32;

using enum MetricGroup;
using enum CounterSet;

Metric StallMetric(std::string_view name, std::string_view counter, std::string_view meaning) {
  return {name, kStall, kHardware, {{counter}}, {{"smsp__warps_active.sum"}}, meaning};
}

// All but the tensor set fit into five passes and one instrumented one on GH100.
std::vector<Metric> MakeTable() {
  return {
      {"counted_seconds",
       kMemory,
       kHardware,
       {{kDuration, 1e-9}},
       {},
       "device time of the counted kernels, at the clock of the counting"},
      {"dram_bytes",
       kMemory,
       kHardware,
       {{"dram__bytes_read.sum"}, {"dram__bytes_write.sum"}},
       {},
       "read from and written to device memory"},
      {"dram_read_bytes",
       kMemory,
       kHardware,
       {{"dram__bytes_read.sum"}},
       {},
       "read from device memory"},
      {"dram_throughput_ratio",
       kMemory,
       kHardware,
       {{"dram__throughput.avg.pct_of_peak_sustained_elapsed", kPercent}},
       {},
       "device memory, of its peak"},
      {"local_bytes",
       kMemory,
       kHardware,
       {{"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", kSectorBytes},
        {"l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", kSectorBytes}},
       {},
       "moved by register spills and indexed local arrays"},
      {"load_sectors_per_request",
       kMemory,
       kHardware,
       {{"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"}},
       {{"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"}},
       "32-byte sectors that one warp's global load touches; 4 for adjacent floats, 32 at worst"},
      {"store_sectors_per_request",
       kMemory,
       kHardware,
       {{"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"}},
       {{"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"}},
       "the same of global stores"},
      {"load_used_ratio",
       kMemory,
       kInstrumented,
       {{"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", kPercent}},
       {},
       "bytes that global loads asked for, of the sectors they touched"},
      {"store_used_ratio",
       kMemory,
       kInstrumented,
       {{"smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", kPercent}},
       {},
       "the same of global stores"},
      {"l2_throughput_ratio",
       kCache,
       kHardware,
       {{"lts__t_sectors.avg.pct_of_peak_sustained_elapsed", kPercent}},
       {},
       "sectors through the L2 cache, of its peak"},
      {"l2_hit_ratio",
       kCache,
       kHardware,
       {{"lts__t_sectors_lookup_hit.sum"}},
       {{"lts__t_sectors_lookup_hit.sum"}, {"lts__t_sectors_lookup_miss.sum"}},
       "sectors that the L2 cache held; a store counts as a hit"},
      {"l1_throughput_ratio",
       kCache,
       kHardware,
       {{"l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed", kPercent}},
       {},
       "data stage of L1 and shared memory, of its peak"},
      {"l1_hit_ratio",
       kCache,
       kHardware,
       {{"l1tex__t_sectors_lookup_hit.sum"}},
       {{"l1tex__t_sectors.sum"}},
       "sectors that the L1 cache held"},
      {"shared_throughput_ratio",
       kShared,
       kHardware,
       {{"l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed", kPercent}},
       {},
       "shared memory, of its peak"},
      {"shared_conflict_ratio",
       kShared,
       kHardware,
       {{"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"}},
       {{"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"}},
       "turns of shared memory spent on bank conflicts"},
      {"fma_pipe_ratio",
       kCompute,
       kHardware,
       {{"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", kPercent}},
       {},
       "FP32 multiply-add pipe, of its peak"},
      {"tensor_pipe_ratio",
       kCompute,
       kHardware,
       {{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", kPercent}},
       {},
       "tensor cores, of their peak"},
      {"fp32_flops",
       kCompute,
       kInstrumented,
       {{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2},
        {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"},
        {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"}},
       {},
       "FP32 additions and multiplications outside tensor cores"},
      {"tensor_flops",
       kCompute,
       kTensor,
       {{"sm__ops_path_tensor_src_tf32_dst_fp32.sum"},
        {"sm__ops_path_tensor_src_fp16.sum"},
        {"sm__ops_path_tensor_src_bf16_dst_fp32.sum"}},
       {},
       "additions and multiplications in tensor cores from TF32, FP16 and BF16"},
      {"instruction_count",
       kSchedule,
       kHardware,
       {{"smsp__inst_executed.sum"}},
       {},
       "instructions executed, one per warp"},
      {"sm_cycle_count",
       kSchedule,
       kHardware,
       {{"sm__cycles_elapsed.max"}},
       {},
       "multiprocessor cycles"},
      {"sm_active_ratio",
       kSchedule,
       kHardware,
       {{"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", kPercent}},
       {},
       "time in which a multiprocessor has any warp, mean over them"},
      {"issue_slot_ratio",
       kSchedule,
       kHardware,
       {{"sm__inst_issued.avg.pct_of_peak_sustained_elapsed", kPercent}},
       {},
       "cycles in which a scheduler issued an instruction"},
      {"warps_active_ratio",
       kSchedule,
       kHardware,
       {{"sm__warps_active.avg.pct_of_peak_sustained_active", kPercent}},
       {},
       "resident warps, of the most there can be: achieved occupancy"},
      StallMetric("stall_long_scoreboard_ratio", "smsp__warps_issue_stalled_long_scoreboard.sum",
                  "warps that wait for global or local memory"),
      StallMetric("stall_short_scoreboard_ratio", "smsp__warps_issue_stalled_short_scoreboard.sum",
                  "warps that wait for shared memory or a special function"),
      StallMetric("stall_barrier_ratio", "smsp__warps_issue_stalled_barrier.sum",
                  "warps that wait for others of their block"),
      StallMetric("stall_math_pipe_ratio", "smsp__warps_issue_stalled_math_pipe_throttle.sum",
                  "warps that wait for a busy arithmetic pipe"),
      StallMetric("stall_mio_ratio", "smsp__warps_issue_stalled_mio_throttle.sum",
                  "warps that wait for the queue of shared-memory instructions"),
      StallMetric("stall_lg_ratio", "smsp__warps_issue_stalled_lg_throttle.sum",
                  "warps that wait for the queue of global and local memory"),
      StallMetric("stall_wait_ratio", "smsp__warps_issue_stalled_wait.sum",
                  "warps that wait for the fixed latency of an instruction"),
      StallMetric("stall_not_selected_ratio", "smsp__warps_issue_stalled_not_selected.sum",
                  "warps that were ready while another was issued"),
      StallMetric("stall_no_instruction_ratio", "smsp__warps_issue_stalled_no_instruction.sum",
                  "warps that wait for the instruction cache"),
  };
}

bool IsPercent(std::string_view counter) { return counter.find(".pct") != counter.npos; }

// Nothing when a counter is missing.
std::optional<double> Sum(const std::vector<Term>& terms, const Values& counters) {
  double sum = 0;
  for (const Term& term : terms) {
    const auto found = counters.find(term.counter);
    if (found == counters.end()) return std::nullopt;
    sum += term.weight * found->second;
  }
  return sum;
}

}  // namespace

std::string_view Title(MetricGroup group) {
  switch (group) {
    case kMemory:
      return "memory";
    case kCache:
      return "caches";
    case kShared:
      return "shared memory";
    case kCompute:
      return "arithmetic";
    case kSchedule:
      return "scheduling";
    case kStall:
      return "stalls";
  }
  return "";
}

std::span<const Metric> MetricTable() {
  static const auto& table = *new std::vector<Metric>(MakeTable());
  return table;
}

const Metric* FindMetric(std::string_view name) {
  for (const Metric& metric : MetricTable()) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

std::vector<std::string> CountersOf(CounterSet set) {
  std::set<std::string> names;
  for (const Metric& metric : MetricTable()) {
    if (metric.set != set) continue;
    for (const auto* terms : {&metric.numerator, &metric.denominator}) {
      for (const Term& term : *terms) names.emplace(term.counter);
    }
  }
  return {names.begin(), names.end()};
}

Values Derive(const Values& counters) {
  Values metrics;
  for (const Metric& metric : MetricTable()) {
    const std::optional<double> numerator = Sum(metric.numerator, counters);
    if (!numerator) continue;
    double value = *numerator;
    if (!metric.denominator.empty()) {
      const double denominator = Sum(metric.denominator, counters).value_or(0);
      if (denominator <= 0) continue;
      value /= denominator;
    }
    if (std::isfinite(value)) metrics[std::string(metric.name)] = value;
  }
  return metrics;
}

Values Merge(std::span<const Values> kernels) {
  if (kernels.size() == 1) return kernels.front();
  Values merged;
  Values weights;
  for (const Values& kernel : kernels) {
    const auto duration = kernel.find(kDuration);
    const double seconds = duration == kernel.end() ? 0 : duration->second;
    for (const auto& [name, value] : kernel) {
      if (!std::isfinite(value)) continue;
      const double weight = IsPercent(name) ? seconds : 1;
      merged[name] += weight * value;
      weights[name] += weight;
    }
  }
  for (auto& [name, value] : merged) {
    if (IsPercent(name) && weights[name] > 0) value /= weights[name];
  }
  return merged;
}

}  // namespace mtmc::profile
