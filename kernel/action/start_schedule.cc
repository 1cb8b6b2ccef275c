// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/start_schedule.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/action/starting_knobs.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// Sums of products, running sums and what has no loop form are where vendors
// have put years of work, or where no template helps.
bool BelongsToVendor(const ScheduleContext& context, const std::string& node) {
  const std::vector<const Loop*>& loops = context.index.LoopsOf(node);
  return std::any_of(loops.begin(), loops.end(), [](const Loop* loop) {
    return loop->form == Loop::Form::kContract || loop->form == Loop::Form::kScan ||
           loop->form == Loop::Form::kOpaque;
  });
}

void CallVendor(const ScheduleContext& context, Schedule& schedule) {
  for (KernelGroup& group : schedule.groups) {
    if (!BelongsToVendor(context, group.nodes[0])) continue;
    KernelGroup call = group;
    call.family = FamilyKind::kLibrary;
    const GroupView view = MakeGroupView(context.graph, context.nest, context.index, call);
    if (FamilyOf(FamilyKind::kLibrary).Accepts(view)) group = std::move(call);
  }
}

// Joins every group with the element-wise ones around it.
void JoinNeighbours(const ScheduleContext& context, Schedule& schedule) {
  std::set<std::string> done;
  // Those with a loop of their own first: what they take along costs nothing,
  // and chains of element-wise groups are what remains.
  for (const bool is_host : {true, false}) {
    for (size_t g = 0; g < schedule.groups.size();) {
      const KernelGroup& seed = schedule.groups[g];
      const bool is_pointwise = seed.family == FamilyKind::kPointwise;
      if (seed.family == FamilyKind::kLibrary || is_pointwise == is_host ||
          !done.insert(seed.name).second) {
        ++g;
        continue;
      }
      const GroupGraph graph(context, schedule);
      const std::set<int> members = GrowByPointwise(context, schedule, graph, static_cast<int>(g));
      if (members.size() < 2) continue;
      const KernelGroup joined = *JoinGroups(context, schedule, graph, members);
      done.insert(joined.name);
      schedule = ReplaceGroups(context, schedule, members, {joined});
      g = 0;
    }
  }
}

std::string_view ToText(StartMapping mapping) {
  switch (mapping) {
    case StartMapping::kEager:
      return "eager";
    case StartMapping::kOwn:
      return "own";
    case StartMapping::kPlain:
      return "plain";
    case StartMapping::kNaive:
      return "naive";
  }
  return "naive";
}

std::string_view Describe(StartMapping mapping) {
  switch (mapping) {
    case StartMapping::kEager:
      return "library calls and joined kernels";
    case StartMapping::kOwn:
      return "kernels of our own";
    case StartMapping::kPlain:
      return "one call or kernel per operation";
    case StartMapping::kNaive:
      return "the simplest kernel per operation";
  }
  return "";
}

}  // namespace

absl::StatusOr<Schedule> MakeStartSchedule(const ScheduleContext& context, StartMapping mapping) {
  MTMC_ASSIGN_OR_RETURN(Schedule schedule, MakeNaiveSchedule(context));
  if (mapping == StartMapping::kNaive) return schedule;
  if (mapping != StartMapping::kOwn && context.allow_library) CallVendor(context, schedule);
  if (mapping != StartMapping::kPlain) JoinNeighbours(context, schedule);
  for (KernelGroup& group : schedule.groups) group.knobs = StartingKnobs(context, group);
  schedule.has_capture = context.target.dialect == Dialect::kCuda &&
                         mapping != StartMapping::kPlain && !schedule.groups.empty();
  return schedule;
}

std::vector<LegalAction> EnumerateRestarts(const ScheduleContext& context,
                                           const Schedule& schedule) {
  std::vector<LegalAction> restarts;
  std::vector<Schedule> seen = {schedule};
  for (const StartMapping mapping :
       {StartMapping::kEager, StartMapping::kOwn, StartMapping::kPlain, StartMapping::kNaive}) {
    const absl::StatusOr<Schedule> start = MakeStartSchedule(context, mapping);
    if (!start.ok() || std::find(seen.begin(), seen.end(), *start) != seen.end()) continue;
    seen.push_back(*start);
    EngineAction action{.type = "restart", .text = Concat("begin again with ", Describe(mapping))};
    action.arguments = {{"mapping", std::string(ToText(mapping))},
                        {"rank", std::to_string(restarts.size())}};
    restarts.push_back({std::move(action), [start] { return *start; }});
  }
  return restarts;
}

}  // namespace mtmc::kernel
