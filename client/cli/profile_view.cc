// SPDX-License-Identifier: Apache-2.0
#include "client/cli/profile_view.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/output.h"
#include "common/profile/metric_table.h"
#include "common/profile/profile_text.h"

namespace mtmc::client {
namespace {

// Columns of single kernels beside the plan's; more do not fit a terminal.
constexpr size_t kShownKernels = 3;

// Longest name that a column header shows.
constexpr size_t kHeaderBytes = 16;

using Metrics = google::protobuf::Map<std::string, double>;

std::string Percent(double ratio) {
  return ratio > 0 ? absl::StrFormat("%.0f %%", 100 * ratio) : "-";
}

std::string OrDash(int64_t value) { return value > 0 ? absl::StrCat(value) : "-"; }

std::string ValueText(const Metrics& metrics, std::string_view name) {
  const auto found = metrics.find(std::string(name));
  return found == metrics.end() ? "-" : profile::FormatMetric(name, found->second);
}

void PrintKernels(const v1::Profile& profile, std::ostream& out) {
  Table table({"kernel", ">time", ">share", ">blocks", ">threads", ">registers", ">shared",
               ">local", ">occupancy", ">achieved"});
  for (const v1::KernelActivity& kernel : profile.kernels()) {
    table.AddRow({kernel.kernel(), FormatSeconds(kernel.seconds()), Percent(kernel.share_ratio()),
                  OrDash(kernel.blocks()), OrDash(kernel.threads_per_block()),
                  OrDash(kernel.registers_per_thread()), OrDash(kernel.shared_memory_bytes()),
                  OrDash(kernel.local_memory_bytes()), Percent(kernel.occupancy_ratio()),
                  ValueText(kernel.metrics(), "warps_active_ratio")});
  }
  table.Print(out);
}

// Those that were counted, longest first; none when there is only one.
std::vector<const v1::KernelActivity*> KernelColumns(const v1::Profile& profile) {
  std::vector<const v1::KernelActivity*> kernels;
  if (profile.kernels_size() < 2) return kernels;
  for (const v1::KernelActivity& kernel : profile.kernels()) {
    if (!kernel.metrics().empty()) kernels.push_back(&kernel);
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto* a, const auto* b) { return a->seconds() > b->seconds(); });
  kernels.resize(std::min(kernels.size(), kShownKernels));
  return kernels;
}

void PrintCounters(const v1::Profile& profile, std::ostream& out) {
  const std::vector<const v1::KernelActivity*> kernels = KernelColumns(profile);
  std::vector<std::string> headers = {"counters", "", ">plan"};
  for (const auto* kernel : kernels)
    headers.push_back(">" + kernel->kernel().substr(0, kHeaderBytes));
  headers.push_back("meaning");
  Table table(headers);
  std::optional<profile::MetricGroup> group;
  for (const profile::Metric& metric : profile::MetricTable()) {
    const std::string name(metric.name);
    if (!profile.metrics().contains(name)) continue;
    std::vector<std::string> row = {
        group == metric.group ? "" : std::string(profile::Title(metric.group)), name,
        ValueText(profile.metrics(), name)};
    group = metric.group;
    for (const auto* kernel : kernels) row.push_back(ValueText(kernel->metrics(), name));
    row.push_back(Dim(std::string(metric.meaning)));
    table.AddRow(std::move(row));
  }
  table.Print(out);
}

}  // namespace

void PrintProfile(const v1::Profile& profile, std::ostream& out) {
  if (profile.kernels().empty()) return;
  out << "\n" << Bold("profile") << " (" << profile.source();
  if (profile.passes() > 0) {
    out << ", " << profile.passes() << " passes for counters, "
        << FormatSeconds(profile.collection_seconds());
  }
  out << ")\n";
  PrintKernels(profile, out);
  if (!profile.summary().empty()) out << profile.summary() << "\n";
  if (!profile.metrics().empty()) {
    out << "\n";
    PrintCounters(profile, out);
  } else if (!profile.missing_counters().empty()) {
    out << Dim(absl::StrCat("no counters: ", profile.missing_counters())) << "\n";
  }
}

}  // namespace mtmc::client
