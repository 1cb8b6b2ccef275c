// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/own_kernel.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "kernel/action/start_schedule.h"
#include "kernel/action/starting_knobs.h"
#include "kernel/graph/text.h"
#include "kernel/writer/source_comment.h"

namespace mtmc::kernel {
namespace {

LegalAction MakeAction(const ScheduleContext& context, const Schedule& from,
                       const std::set<int>& members, std::string type, std::string text,
                       std::function<Schedule()> apply) {
  EngineAction action{.type = std::move(type), .arguments = {{"own", "yes"}}};
  for (const int member : members) {
    const KernelGroup& group = from.groups[static_cast<size_t>(member)];
    action.kernels.push_back(group.name);
    action.nodes.insert(action.nodes.end(), group.nodes.begin(), group.nodes.end());
  }
  const SourceLines lines = LinesOf(context.graph, action.nodes);
  action.first_line = lines.first;
  action.last_line = lines.last;
  const std::string where = ToText(lines);
  action.text = where.empty() ? std::move(text) : Concat(text, " ", where);
  return {std::move(action), std::move(apply)};
}

// All calls in one step, where there are several: one after the other takes a
// trial each.
void AddAll(const ScheduleContext& context, const Schedule& schedule,
            std::vector<LegalAction>& actions) {
  std::set<int> calls;
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const KernelGroup& group = schedule.groups[g];
    const bool is_call = group.family == FamilyKind::kLibrary;
    if (is_call && FindFamily(context, group.nodes)) calls.insert(static_cast<int>(g));
  }
  if (calls.size() < 2) return;
  actions.push_back(
      MakeAction(context, schedule, calls, "fuse", "fuse all library calls as kernels of our own",
                 [&context, &schedule] {
                   return MakeStartSchedule(context, StartMapping::kOwn).value_or(schedule);
                 }));
  // Joins the other groups anew, too.
  actions.back().action.arguments["scope"] = "plan";
}

}  // namespace

std::vector<LegalAction> EnumerateOwnKernels(const ScheduleContext& context,
                                             const Schedule& schedule) {
  std::vector<LegalAction> actions;
  AddAll(context, schedule, actions);
  const GroupGraph graph(context, schedule);
  Schedule own = schedule;
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const KernelGroup& call = schedule.groups[g];
    if (call.family != FamilyKind::kLibrary) continue;
    const std::optional<FamilyKind> family = FindFamily(context, call.nodes);
    if (!family) continue;
    KernelGroup kernel{.name = call.name, .nodes = call.nodes, .family = *family};
    kernel.knobs = StartingKnobs(context, kernel);
    const auto index = static_cast<int>(g);
    actions.push_back(MakeAction(context, schedule, {index}, "tile",
                                 Concat("tile ", call.name, " as a kernel of our own"),
                                 [&schedule, g, kernel] {
                                   Schedule result = schedule;
                                   result.groups[g] = kernel;
                                   return result;
                                 }));
    own.groups[g] = kernel;
    const std::set<int> members = GrowByPointwise(context, own, graph, index);
    std::optional<KernelGroup> joined;
    if (members.size() > 1) joined = JoinGroups(context, own, graph, members);
    own.groups[g] = call;
    if (!joined) continue;
    joined->knobs = StartingKnobs(context, *joined);
    actions.push_back(
        MakeAction(context, schedule, members, "fuse",
                   Concat("fuse ", call.name, " as a kernel of our own with what is around it"),
                   [&context, &schedule, members, group = *std::move(joined)] {
                     return ReplaceGroups(context, schedule, members, {group});
                   }));
  }
  return actions;
}

}  // namespace mtmc::kernel
