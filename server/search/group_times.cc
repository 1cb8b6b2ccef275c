// SPDX-License-Identifier: Apache-2.0
#include "server/search/group_times.h"

#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernel/templates/template_registry.h"
#include "server/search/lineage.h"

namespace mtmc::search {
namespace {

// Launches of a group have its name: `GROUP`, `GROUP_pieces`.
bool IsLaunchOf(const std::string& kernel, const kernel::KernelGroup& group) {
  return kernel == group.name || absl::StartsWith(kernel, absl::StrCat(group.name, "_"));
}

bool IsCall(const std::string& kernel) { return absl::StrContains(kernel, "::"); }

// Gives each group its kernels, in order; a library group ends with its call,
// which copies of what it reads may precede.
class Attribution {
 public:
  explicit Attribution(const v1::Profile& profile) : profile_(profile) {}

  std::optional<double> Take(const kernel::KernelGroup& group, const kernel::KernelGroup* next) {
    const kernel::KernelTemplate* printer = kernel::FindTemplate(group.template_name);
    const bool is_library = printer != nullptr && printer->is_call;
    double seconds = 0;
    int taken = 0;
    for (; at_ < profile_.kernels_size(); ++at_) {
      const v1::KernelActivity& kernel = profile_.kernels(at_);
      const bool ends = IsCall(kernel.kernel());
      if (ends ? !is_library : !IsLaunchOf(kernel.kernel(), group)) break;
      // `relu` has launched when `relu_2` begins.
      const bool is_next = next != nullptr && next->name.size() > group.name.size() && !ends &&
                           IsLaunchOf(kernel.kernel(), *next);
      if (is_next && taken > 0 && !is_library) break;
      seconds += kernel.seconds();
      ++taken;
      if (!ends) continue;
      ++at_;
      return seconds;
    }
    if (taken == 0 || is_library) return std::nullopt;
    return seconds;
  }

 private:
  const v1::Profile& profile_;
  int at_ = 0;
};

}  // namespace

double TimedSchedule::total_seconds() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double TimedSchedule::SecondsOf(const std::vector<size_t>& groups) const {
  double sum = 0;
  for (const size_t group : groups) sum += seconds[group];
  return sum;
}

std::optional<TimedSchedule> TimeGroups(const v1::Candidate& candidate) {
  if (!IsCorrect(candidate) || candidate.schedule().empty()) return std::nullopt;
  absl::StatusOr<kernel::Schedule> schedule = kernel::ParseSchedule(candidate.schedule());
  if (!schedule.ok()) return std::nullopt;
  TimedSchedule timed{.schedule = *std::move(schedule)};
  const std::vector<kernel::KernelGroup>& groups = timed.schedule.groups;
  Attribution attribution(candidate.evaluation().profile());
  for (size_t g = 0; g < groups.size(); ++g) {
    const kernel::KernelGroup* next = g + 1 < groups.size() ? &groups[g + 1] : nullptr;
    const std::optional<double> seconds = attribution.Take(groups[g], next);
    if (!seconds || *seconds <= 0) return std::nullopt;
    timed.seconds.push_back(*seconds);
  }
  return timed;
}

}  // namespace mtmc::search
