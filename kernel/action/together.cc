// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/together.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

bool Contains(const Schedule& schedule, const KernelGroup& group) {
  return std::find(schedule.groups.begin(), schedule.groups.end(), group) != schedule.groups.end();
}

// Each step has chosen names that are free in `from`, not in what others made.
void MakeNamesUnique(const Schedule& from, const std::set<int>& replaced,
                     std::vector<KernelGroup>& made) {
  std::set<std::string> names;
  for (size_t g = 0; g < from.groups.size(); ++g) {
    if (!replaced.contains(static_cast<int>(g))) names.insert(from.groups[g].name);
  }
  for (KernelGroup& group : made) {
    const std::string name = group.name;
    for (int suffix = 2; !names.insert(group.name).second; ++suffix) {
      group.name = Concat(name, "_", suffix);
    }
  }
}

}  // namespace

absl::StatusOr<Schedule> ApplyTogether(const ScheduleContext& context, const Schedule& from,
                                       const std::vector<std::function<Schedule()>>& steps) {
  std::set<int> replaced;
  std::vector<KernelGroup> made;
  for (const std::function<Schedule()>& step : steps) {
    const Schedule changed = step();
    for (const KernelGroup& group : changed.groups) {
      if (!Contains(from, group)) made.push_back(group);
    }
    for (size_t g = 0; g < from.groups.size(); ++g) {
      if (Contains(changed, from.groups[g])) continue;
      if (!replaced.insert(static_cast<int>(g)).second) {
        return absl::FailedPreconditionError(
            Concat("two steps change the group \"", from.groups[g].name, "\""));
      }
    }
  }
  MakeNamesUnique(from, replaced, made);
  Schedule together = ReplaceGroups(context, from, replaced, made);
  const absl::Status status = CheckSchedule(context, together);
  if (!status.ok()) return absl::FailedPreconditionError(status.message());
  return together;
}

}  // namespace mtmc::kernel
