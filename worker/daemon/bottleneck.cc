// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/bottleneck.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/profile/profile_text.h"

namespace mtmc::worker {
namespace {

// Above this part of its peak something is in the way of everything else: a copy
// of large tensors reaches 85 to 95 %, the best GEMM about 90 %.
constexpr double kBusy = 0.6;

constexpr size_t kMaxRemarks = 2;

struct Part {
  std::string_view metric;
  v1::Profile::Limit limit;
  const char* text;
};

// In the order in which they excuse each other: a busy tensor pipe needs busy
// shared memory, busy device memory needs busy caches.
constexpr auto kParts = std::to_array<Part>({
    {"tensor_pipe_ratio", v1::Profile::LIMIT_COMPUTE, "the tensor pipe is"},
    {"dram_throughput_ratio", v1::Profile::LIMIT_MEMORY, "device memory is"},
    {"fma_pipe_ratio", v1::Profile::LIMIT_COMPUTE, "the FP32 pipe is"},
    {"l2_throughput_ratio", v1::Profile::LIMIT_MEMORY, "the L2 cache is"},
    {"shared_throughput_ratio", v1::Profile::LIMIT_MEMORY, "shared memory is"},
    {"l1_throughput_ratio", v1::Profile::LIMIT_MEMORY, "the L1 cache is"},
    {"issue_slot_ratio", v1::Profile::LIMIT_COMPUTE, "instruction issue is"},
});

struct Wait {
  std::string_view metric;
  const char* text;
};

constexpr auto kWaits = std::to_array<Wait>({
    {"stall_long_scoreboard_ratio", "for global memory"},
    {"stall_short_scoreboard_ratio", "for shared memory or special functions"},
    {"stall_barrier_ratio", "at barriers"},
    {"stall_math_pipe_ratio", "for arithmetic pipes"},
    {"stall_mio_ratio", "for the queue of shared memory"},
    {"stall_lg_ratio", "for the queue of global memory"},
    {"stall_wait_ratio", "for results of the instruction before"},
    {"stall_no_instruction_ratio", "for instructions"},
});

double ValueOf(const profile::Values& metrics, std::string_view name, double fallback = 0) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? fallback : found->second;
}

std::string Percent(double ratio) { return absl::StrFormat("%.0f %%", 100 * ratio); }

// The busiest part, if any is busy; of several, the first in the table.
std::optional<Bottleneck> FindBusy(const profile::Values& metrics) {
  for (const Part& part : kParts) {
    const double ratio = ValueOf(metrics, part.metric);
    if (ratio < kBusy) continue;
    return Bottleneck{part.limit, absl::StrCat(part.text, " at ", Percent(ratio), " of its peak")};
  }
  return std::nullopt;
}

Bottleneck FindLatency(const profile::Values& metrics) {
  if (const double active = ValueOf(metrics, "sm_active_ratio", 1); active < kBusy) {
    return {v1::Profile::LIMIT_LATENCY, absl::StrCat("the multiprocessors have work in only ",
                                                     Percent(active), " of the time")};
  }
  const auto longest =
      std::max_element(kWaits.begin(), kWaits.end(), [&](const Wait& a, const Wait& b) {
        return ValueOf(metrics, a.metric) < ValueOf(metrics, b.metric);
      });
  const double share = ValueOf(metrics, longest->metric);
  if (share <= 0) return {};
  return {v1::Profile::LIMIT_LATENCY, absl::StrCat("no part is busy; warps wait ", longest->text,
                                                   " in ", Percent(share), " of their time")};
}

using Remark = std::optional<std::string> (*)(const profile::Values&);

std::optional<std::string> Scattered(const profile::Values& metrics) {
  const double used = ValueOf(metrics, "load_used_ratio", 1);
  if (used > 0 && used < 0.6) {
    return absl::StrFormat("loads use %.0f of the 32 bytes of a sector", 32 * used);
  }
  const double sectors = ValueOf(metrics, "load_sectors_per_request");
  if (metrics.contains("load_used_ratio") || sectors <= 20) return std::nullopt;
  return absl::StrFormat("a warp's load touches %.0f sectors", sectors);
}

std::optional<std::string> Spills(const profile::Values& metrics) {
  const double bytes = ValueOf(metrics, "local_bytes");
  if (bytes <= 0 || bytes < 0.05 * ValueOf(metrics, "dram_bytes")) return std::nullopt;
  return absl::StrCat("spills and local arrays move ", profile::FormatMetric("local_bytes", bytes));
}

std::optional<std::string> Conflicts(const profile::Values& metrics) {
  const double ratio = ValueOf(metrics, "shared_conflict_ratio");
  if (ratio < 0.25 || ValueOf(metrics, "shared_throughput_ratio", 1) < 0.1) return std::nullopt;
  return absl::StrCat(Percent(ratio), " of shared memory's turns are bank conflicts");
}

std::optional<std::string> FewWarps(const profile::Values& metrics) {
  const double ratio = ValueOf(metrics, "warps_active_ratio", 1);
  if (ratio >= 0.25) return std::nullopt;
  return absl::StrCat("only ", Percent(ratio), " of the warps are resident");
}

std::optional<std::string> Barriers(const profile::Values& metrics) {
  const double ratio = ValueOf(metrics, "stall_barrier_ratio");
  // Otherwise it is the bottleneck already, or no news.
  const bool is_hidden = FindBusy(metrics).has_value();
  if (ratio < 0.25 || !is_hidden) return std::nullopt;
  return absl::StrCat("warps wait at barriers in ", Percent(ratio), " of their time");
}

// Most telling first.
constexpr Remark kRemarks[] = {Scattered, Spills, Conflicts, FewWarps, Barriers};

}  // namespace

Bottleneck FindBottleneck(const profile::Values& metrics) {
  Bottleneck bottleneck = FindBusy(metrics).value_or(FindLatency(metrics));
  if (bottleneck.limit == v1::Profile::LIMIT_UNSPECIFIED) return bottleneck;
  size_t num_remarks = 0;
  for (const Remark remark : kRemarks) {
    if (num_remarks == kMaxRemarks) break;
    const std::optional<std::string> text = remark(metrics);
    if (!text) continue;
    absl::StrAppend(&bottleneck.reason, ", ", *text);
    ++num_remarks;
  }
  return bottleneck;
}

}  // namespace mtmc::worker
