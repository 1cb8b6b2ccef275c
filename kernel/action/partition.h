// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernel/schedule/schedule.h"
#include "kernel/templates/template_registry.h"
#include "kernel/view/group_view.h"

namespace mtmc::kernel {

// Groups that one union takes at most: a kernel that a person can still read.
inline constexpr size_t kMaxJoined = 32;

// What a schedule is about: a graph in both its forms, after rewrites, and the device. The
// referenced objects must outlive it.
struct ScheduleContext {
  const Graph& graph;
  const LoopNest& nest;
  const NestIndex& index;
  EmitTarget target;
  bool allow_library = true;
  // Those that gave the graph.
  std::vector<RewriteStep> rewrites = {};
};

// The group as its template sees it. The arguments must outlive the view.
GroupView ViewOf(const ScheduleContext& context, const KernelGroup& group);

// One group per node that is neither free nor unused, in graph order; a library
// call where no template of our own accepts the node. UNIMPLEMENTED when that is
// needed and not allowed, or there is no such call.
absl::StatusOr<Schedule> MakeNaiveSchedule(const ScheduleContext& context);

// INVALID_ARGUMENT unless the groups are in an order in which every value is
// computed before it is read, their nodes exist and their templates accept them.
absl::Status CheckSchedule(const ScheduleContext& context, const Schedule& schedule);

// The first template of our own that accepts these nodes as one group; null when
// none does.
const KernelTemplate* FindOwnTemplate(const ScheduleContext& context,
                                      const std::vector<std::string>& nodes);

// The template of a precision tier that may compute these nodes as one group faster on tensor
// cores; null when none does, or it may call no library.
const KernelTemplate* FindTier(const ScheduleContext& context,
                               const std::vector<std::string>& nodes);

// Whether a group of maps may be joined with what is around it at no risk: it is
// inlined into whoever reads it, or computed where its argument is.
bool IsElementwise(const GroupView& view);

// Who reads whom among the groups of one schedule, through free nodes too. The
// context and the schedule must outlive it.
class GroupGraph {
 public:
  GroupGraph(const ScheduleContext& context, const Schedule& schedule);

  // Group indices, sorted.
  const std::set<int>& ProducersOf(int group) const {
    return producers_[static_cast<size_t>(group)];
  }

  const std::set<int>& ConsumersOf(int group) const {
    return consumers_[static_cast<size_t>(group)];
  }

  // The group that was in the schedule, as its template sees it.
  const GroupView& ViewOf(int group) const { return views_[static_cast<size_t>(group)]; }

  // True when a path between two members leaves the set: joining would make a
  // cycle.
  bool HasPathOutside(const std::set<int>& members) const;

 private:
  std::vector<GroupView> views_;
  std::vector<std::set<int>> producers_;
  std::vector<std::set<int>> consumers_;
};

// The groups as one, when that is legal: no cycle, no library call among them,
// a template that accepts the union, and less work added by computing inlined
// maps again than memory traffic saved. The name comes from the group that
// gives the template, or from all for a pointwise union.
std::optional<KernelGroup> JoinGroups(const ScheduleContext& context, const Schedule& schedule,
                                      const GroupGraph& graph, const std::set<int>& members);

// The largest legal union of a group and element-wise groups around it, reached by adding one
// neighbour after the other, those of `except` left out; `seed` alone where there is none.
// REQUIRES: it is no library call.
std::set<int> GrowByPointwise(const ScheduleContext& context, const Schedule& schedule,
                              const GroupGraph& graph, int seed, const std::set<int>& except = {});

// `schedule` with the members replaced by `joined`, in a legal order; tune
// lines of the members are dropped.
Schedule ReplaceGroups(const ScheduleContext& context, const Schedule& schedule,
                       const std::set<int>& members, const std::vector<KernelGroup>& groups);

}  // namespace mtmc::kernel
