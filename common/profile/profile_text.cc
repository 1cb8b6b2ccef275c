// SPDX-License-Identifier: Apache-2.0
#include "common/profile/profile_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "mtmc/v1/evaluation.pb.h"

namespace mtmc::profile {
namespace {

constexpr size_t kShownKernels = 5;
constexpr size_t kShownStalls = 3;
// Names of C++ templates are long.
constexpr size_t kNameBytes = 60;
// A stall below this share decides nothing.
constexpr double kSmallStall = 0.05;

struct Part {
  std::string_view metric;
  const char* label;
  // Left out below, because it says nothing then.
  double least;
};

// In the order of a chip's picture: memory, caches, arithmetic, schedulers.
constexpr auto kParts = std::to_array<Part>({
    {"dram_throughput_ratio", "dram", 0},
    {"l2_throughput_ratio", "l2", 0},
    {"l1_throughput_ratio", "l1", 0},
    {"shared_throughput_ratio", "shared", 0.01},
    {"fma_pipe_ratio", "fma pipe", 0.01},
    {"tensor_pipe_ratio", "tensor pipe", 0.01},
    {"issue_slot_ratio", "issue slots", 0},
    {"warps_active_ratio", "active warps", 0},
    {"sm_active_ratio", "active multiprocessors", 0},
    {"l2_hit_ratio", "l2 hits", 0},
    {"load_used_ratio", "used of loaded sectors", 0},
    {"load_sectors_per_request", "sectors per load", 0},
    {"store_sectors_per_request", "sectors per store", 0},
    {"shared_conflict_ratio", "bank conflicts", 0.01},
    {"local_bytes", "spills", 1},
    {"dram_bytes", "dram traffic", 0},
});

std::string Scaled(double value, const char* unit) {
  constexpr std::array<std::pair<double, const char*>, 4> kScales = {
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [scale, prefix] : kScales) {
    if (value >= scale) return absl::StrFormat("%.3g %s%s", value / scale, prefix, unit);
  }
  return absl::StrFormat("%.3g %s", value, unit);
}

std::string StallName(std::string_view metric) {
  metric.remove_prefix(std::string_view("stall_").size());
  metric.remove_suffix(std::string_view("_ratio").size());
  return absl::StrReplaceAll(std::string(metric), {{"_", " "}});
}

std::string StallText(const Values& metrics) {
  std::vector<std::pair<double, std::string>> stalls;
  for (const auto& [name, value] : metrics) {
    if (name.starts_with("stall_") && value >= kSmallStall) stalls.emplace_back(value, name);
  }
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  stalls.resize(std::min(stalls.size(), kShownStalls));
  return absl::StrJoin(stalls, ", ", [](std::string* out, const auto& stall) {
    absl::StrAppendFormat(out, "%s %.0f %%", StallName(stall.second), 100 * stall.first);
  });
}

Values ToValues(const google::protobuf::Map<std::string, double>& map) {
  return {map.begin(), map.end()};
}

std::string KernelLine(const v1::KernelActivity& kernel) {
  std::string line =
      absl::StrFormat("%s: %.0f %% of the time, %.3g us", kernel.kernel().substr(0, kNameBytes),
                      100 * kernel.share_ratio(), 1e6 * kernel.seconds());
  if (kernel.blocks() > 0) {
    absl::StrAppendFormat(&line, ", %d blocks of %d", kernel.blocks(), kernel.threads_per_block());
  }
  if (kernel.registers_per_thread() > 0) {
    absl::StrAppendFormat(&line, ", %d registers", kernel.registers_per_thread());
  }
  if (kernel.shared_memory_bytes() > 0) {
    absl::StrAppendFormat(&line, ", %d B shared", kernel.shared_memory_bytes());
  }
  if (kernel.local_memory_bytes() > 0) {
    absl::StrAppendFormat(&line, ", %d B local", kernel.local_memory_bytes());
  }
  if (kernel.occupancy_ratio() > 0) {
    absl::StrAppendFormat(&line, ", occupancy %.0f %%", 100 * kernel.occupancy_ratio());
  }
  return line;
}

}  // namespace

std::string FormatMetric(std::string_view name, double value) {
  if (name.ends_with("_ratio")) return absl::StrFormat("%.0f %%", 100 * value);
  if (name.ends_with("_bytes")) return Scaled(value, "B");
  if (name.ends_with("_flops")) return Scaled(value, "FLOP");
  if (name.ends_with("_seconds")) return absl::StrFormat("%.3g us", 1e6 * value);
  if (name.ends_with("_per_request")) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.4g", value);
}

std::string CounterLine(const Values& metrics) {
  std::vector<std::string> parts;
  for (const Part& part : kParts) {
    const auto found = metrics.find(part.metric);
    if (found == metrics.end() || found->second < part.least) continue;
    parts.push_back(absl::StrCat(part.label, " ", FormatMetric(part.metric, found->second)));
  }
  if (const std::string stalls = StallText(metrics); !stalls.empty()) {
    parts.push_back("stalls: " + stalls);
  }
  return absl::StrJoin(parts, ", ");
}

std::string DescribeProfile(const v1::Profile& profile) {
  std::string text;
  if (!profile.summary().empty()) absl::StrAppend(&text, "profile: ", profile.summary(), "\n");
  if (const std::string line = CounterLine(ToValues(profile.metrics())); !line.empty()) {
    absl::StrAppend(&text, "counters: ", line, "\n");
  }
  std::vector<const v1::KernelActivity*> kernels;
  for (const v1::KernelActivity& kernel : profile.kernels()) kernels.push_back(&kernel);
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto* a, const auto* b) { return a->seconds() > b->seconds(); });
  const size_t shown = std::min(kernels.size(), kShownKernels);
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, "  ", KernelLine(*kernels[i]), "\n");
  }
  if (shown < kernels.size()) {
    absl::StrAppend(&text, "  and ", kernels.size() - shown, " shorter ones\n");
  }
  return text;
}

}  // namespace mtmc::profile
