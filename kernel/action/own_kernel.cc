// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/own_kernel.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/action/start_schedule.h"
#include "kernel/action/starting_knobs.h"
#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// All calls in one step, where there are several: one after the other takes a
// trial each.
void AddAll(const ScheduleContext& context, const Schedule& schedule,
            std::vector<LegalAction>& actions) {
  std::set<int> calls;
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const KernelGroup& group = schedule.groups[g];
    const bool is_call = TemplateOf(group).is_call;
    if (is_call && FindOwnTemplate(context, group.nodes)) calls.insert(static_cast<int>(g));
  }
  if (calls.size() < 2) return;
  EngineAction action =
      MakeAction(context, schedule, calls, "fuse", "fuse all library calls as kernels of our own");
  // Joins the other groups anew, too.
  action.arguments = {{"own", "yes"}, {"scope", "plan"}};
  actions.push_back({std::move(action), [&context, &schedule] {
                       return MakeStartSchedule(context, StartMapping::kOwn).value_or(schedule);
                     }});
}

// The group as `printer` would print it first, alone.
LegalAction MakeSwitch(const ScheduleContext& context, const Schedule& schedule, size_t g,
                       const KernelGroup& kernel, std::string_view how) {
  EngineAction action = MakeAction(context, schedule, {static_cast<int>(g)}, "tile",
                                   Concat("tile ", kernel.name, " ", how));
  action.arguments = {{"own", "yes"}};
  return {std::move(action), [&schedule, g, kernel] {
            Schedule result = schedule;
            result.groups[g] = kernel;
            return result;
          }};
}

// The kernel of our own in place of call `g`, with the element-wise groups around it.
std::optional<LegalAction> MakeFusedSwitch(const ScheduleContext& context, const Schedule& schedule,
                                           const GroupGraph& graph, size_t g,
                                           const KernelGroup& kernel) {
  const auto index = static_cast<int>(g);
  Schedule own = schedule;
  own.groups[g] = kernel;
  const std::set<int> members = GrowByPointwise(context, own, graph, index);
  if (members.size() == 1) return std::nullopt;
  std::optional<KernelGroup> joined = JoinGroups(context, own, graph, members);
  if (!joined) return std::nullopt;
  joined->knobs = StartingKnobs(context, *joined);
  EngineAction action =
      MakeAction(context, schedule, members, "fuse",
                 Concat("fuse ", kernel.name, " as a kernel of our own with what is around it"));
  action.arguments = {{"own", "yes"}};
  return LegalAction{std::move(action), [&context, &schedule, members, group = *std::move(joined)] {
                       return ReplaceGroups(context, schedule, members, {group});
                     }};
}

}  // namespace

std::vector<LegalAction> EnumerateOwnKernels(const ScheduleContext& context,
                                             const Schedule& schedule) {
  std::vector<LegalAction> actions;
  AddAll(context, schedule, actions);
  const GroupGraph graph(context, schedule);
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const KernelGroup& now = schedule.groups[g];
    const bool is_call = TemplateOf(now).is_call;
    const KernelTemplate* usual = is_call ? FindOwnTemplate(context, now.nodes) : nullptr;
    for (const KernelTemplate* printer : Templates()) {
      KernelGroup kernel{
          .name = now.name, .nodes = now.nodes, .template_name = std::string(printer->name)};
      if (printer->is_call || kernel.template_name == now.template_name ||
          !printer->accepts(ViewOf(context, kernel), context.target)) {
        continue;
      }
      kernel.knobs = StartingKnobs(context, kernel);
      actions.push_back(MakeSwitch(context, schedule, g, kernel,
                                   printer == usual ? "as a kernel of our own"
                                                    : Concat("with the template ", printer->name)));
      if (printer != usual) continue;
      if (auto fused = MakeFusedSwitch(context, schedule, graph, g, kernel)) {
        actions.push_back(*std::move(fused));
      }
    }
  }
  return actions;
}

}  // namespace mtmc::kernel
