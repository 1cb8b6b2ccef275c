// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/together.h"

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// The groups of a schedule by their names, which are unique: a network has a thousand groups, and
// as many steps are taken together.
class Groups {
 public:
  explicit Groups(const Schedule& schedule) {
    for (const KernelGroup& group : schedule.groups) by_name_.emplace(group.name, &group);
  }

  bool Contain(const KernelGroup& group) const {
    const auto found = by_name_.find(group.name);
    return found != by_name_.end() && *found->second == group;
  }

 private:
  std::unordered_map<std::string_view, const KernelGroup*> by_name_;
};

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
  const Groups before(from);
  for (const std::function<Schedule()>& step : steps) {
    const Schedule changed = step();
    const Groups after(changed);
    for (const KernelGroup& group : changed.groups) {
      if (!before.Contain(group)) made.push_back(group);
    }
    for (size_t g = 0; g < from.groups.size(); ++g) {
      if (after.Contain(from.groups[g])) continue;
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
