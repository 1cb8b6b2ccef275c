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

// The tier that may be faster than what the group has; null where there is none.
const KernelTemplate* FindTierOf(const ScheduleContext& context, const KernelGroup& group) {
  return TemplateOf(group).tier.empty() ? FindTier(context, group.nodes) : nullptr;
}

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

// Every product that may be faster on tensor cores in one step, where there are several.
void AddAllProducts(const ScheduleContext& context, const Schedule& schedule,
                    std::vector<LegalAction>& actions) {
  std::set<int> products;
  std::string tier;
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const KernelTemplate* found = FindTierOf(context, schedule.groups[g]);
    if (found == nullptr) continue;
    products.insert(static_cast<int>(g));
    tier = found->tier;
  }
  if (products.size() < 2) return;
  EngineAction action = MakeAction(context, schedule, products, "tensorize",
                                   Concat("tensorize all products with ", tier));
  // Joins the other groups anew, too.
  action.arguments = {{"precision", tier}, {"scope", "plan"}};
  actions.push_back(
      {std::move(action), [&context, &schedule] {
         return MakeStartSchedule(context, StartMapping::kTensorCores).value_or(schedule);
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

// Groups that one kernel replaces.
struct Fused {
  std::set<int> members;
  KernelGroup kernel;
};

// `kernel` in place of group `g`, with the element-wise groups around it; absent where there are
// none that fit.
std::optional<Fused> FuseAround(const ScheduleContext& context, const Schedule& schedule,
                                const GroupGraph& graph, size_t g, const KernelGroup& kernel) {
  const auto index = static_cast<int>(g);
  Schedule own = schedule;
  own.groups[g] = kernel;
  std::set<int> members = GrowByPointwise(context, own, graph, index);
  if (members.size() == 1) return std::nullopt;
  std::optional<KernelGroup> joined = JoinGroups(context, own, graph, members);
  if (!joined) return std::nullopt;
  joined->knobs = StartingKnobs(context, *joined);
  return Fused{std::move(members), *std::move(joined)};
}

LegalAction Replacing(const ScheduleContext& context, const Schedule& schedule, const Fused& fused,
                      EngineAction action) {
  return {std::move(action), [&context, &schedule, fused] {
            return ReplaceGroups(context, schedule, fused.members, {fused.kernel});
          }};
}

std::optional<LegalAction> MakeFusedSwitch(const ScheduleContext& context, const Schedule& schedule,
                                           const GroupGraph& graph, size_t g,
                                           const KernelGroup& kernel) {
  const std::optional<Fused> fused = FuseAround(context, schedule, graph, g, kernel);
  if (!fused) return std::nullopt;
  EngineAction action =
      MakeAction(context, schedule, fused->members, "fuse",
                 Concat("fuse ", kernel.name, " as a kernel of our own with what is around it"));
  action.arguments = {{"own", "yes"}};
  return Replacing(context, schedule, *fused, std::move(action));
}

// A product on tensor cores, with what is around it where that fits: its last kernel computes
// that on the way. Once more with sums that are more exact, where the template has them.
void AddTier(const ScheduleContext& context, const Schedule& schedule, const GroupGraph& graph,
             size_t g, std::vector<LegalAction>& actions) {
  const KernelGroup& now = schedule.groups[g];
  const KernelTemplate* tier = FindTierOf(context, now);
  if (tier == nullptr) return;
  KernelGroup kernel{
      .name = now.name, .nodes = now.nodes, .template_name = std::string(tier->name)};
  kernel.knobs = StartingKnobs(context, kernel);
  Fused fused = FuseAround(context, schedule, graph, g, kernel)
                    .value_or(Fused{{static_cast<int>(g)}, kernel});
  const std::string text = Concat("tensorize ", now.name, " with ", tier->tier);
  EngineAction action = MakeAction(context, schedule, fused.members, "tensorize", text);
  action.arguments = {{"precision", std::string(tier->tier)}};
  actions.push_back(Replacing(context, schedule, fused, std::move(action)));

  if (tier->exact_knobs == nullptr) return;
  fused.kernel.knobs = tier->exact_knobs(ViewOf(context, fused.kernel), context.target);
  if (fused.kernel.knobs.empty()) return;
  EngineAction exact =
      MakeAction(context, schedule, fused.members, "tensorize", Concat(text, " in short sums"));
  exact.arguments = {{"precision", std::string(tier->tier)}, {"sums", "short"}};
  actions.push_back(Replacing(context, schedule, fused, std::move(exact)));
}

}  // namespace

std::vector<LegalAction> EnumerateOwnKernels(const ScheduleContext& context,
                                             const Schedule& schedule) {
  std::vector<LegalAction> actions;
  AddAllProducts(context, schedule, actions);
  AddAll(context, schedule, actions);
  const GroupGraph graph(context, schedule);
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const KernelGroup& now = schedule.groups[g];
    AddTier(context, schedule, graph, g, actions);
    const bool is_call = TemplateOf(now).is_call;
    const KernelTemplate* usual = is_call ? FindOwnTemplate(context, now.nodes) : nullptr;
    for (const KernelTemplate* printer : Templates()) {
      KernelGroup kernel{
          .name = now.name, .nodes = now.nodes, .template_name = std::string(printer->name)};
      if (printer->is_call || !printer->tier.empty() || kernel.template_name == now.template_name ||
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
