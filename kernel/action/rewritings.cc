// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/rewritings.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "kernel/action/start_schedule.h"
#include "kernel/graph/operators.h"
#include "kernel/graph/text.h"
#include "kernel/rewrite/rewrite.h"

namespace mtmc::kernel {
namespace {

std::vector<TensorType> InputTypesOf(const GroupView& view) {
  std::vector<TensorType> types;
  for (const std::string& input : view.inputs) types.push_back(TypeOf(view, input));
  return types;
}

// Gives the groups of `start` that `schedule` has too what was chosen for them there, unless what
// they read lies otherwise now.
void KeepChoices(const ScheduleContext& before, const Schedule& schedule,
                 const ScheduleContext& context, Schedule& start) {
  for (KernelGroup& group : start.groups) {
    const auto same =
        std::find_if(schedule.groups.begin(), schedule.groups.end(),
                     [&group](const KernelGroup& other) { return other.nodes == group.nodes; });
    if (same == schedule.groups.end()) continue;
    KernelGroup kept = *same;
    kept.name = group.name;
    const GroupView view = ViewOf(context, kept);
    const bool is_alike = InputTypesOf(view) == InputTypesOf(ViewOf(before, *same));
    if (is_alike && CheckGroup(view, context.target, {}).ok()) group = std::move(kept);
  }
}

bool IsIeee(const Schedule& schedule) {
  return std::any_of(schedule.groups.begin(), schedule.groups.end(), [](const KernelGroup& group) {
    return group.precision == LibraryCall::Precision::kIeee;
  });
}

// Whether a vendor may compute in TF32 what it has computed in FP32: it chooses so for
// convolutions, by their shapes.
bool MayBeRounded(const ScheduleContext& context) {
  const std::vector<GraphNode>& nodes = context.graph.nodes;
  return context.allow_library && context.target.dialect == Dialect::kCuda &&
         std::any_of(nodes.begin(), nodes.end(),
                     [](const GraphNode& node) { return IsConvolution(node.op); });
}

absl::StatusOr<Schedule> Rewritten(const ScheduleContext& context, const Schedule& schedule,
                                   const std::vector<RewriteStep>& steps, StartMapping mapping) {
  MTMC_ASSIGN_OR_RETURN(const Graph graph, ApplyRewrites(context.graph, steps));
  MTMC_ASSIGN_OR_RETURN(const LoopNest nest, LowerToLoops(graph));
  const NestIndex index(graph, nest);
  ScheduleContext rewritten{.graph = graph,
                            .nest = nest,
                            .index = index,
                            .target = context.target,
                            .allow_library = context.allow_library,
                            .rewrites = context.rewrites};
  rewritten.rewrites.insert(rewritten.rewrites.end(), steps.begin(), steps.end());
  MTMC_ASSIGN_OR_RETURN(Schedule start, MakeStartSchedule(rewritten, mapping));
  KeepChoices(context, schedule, rewritten, start);
  return start;
}

LegalAction MakeRewriting(const ScheduleContext& context, const Schedule& schedule,
                          const std::vector<RewriteStep>& steps, const std::string& type,
                          std::string text, StartMapping mapping) {
  std::set<int> groups;
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const std::vector<std::string>& nodes = schedule.groups[g].nodes;
    const bool is_changed =
        std::any_of(steps.begin(), steps.end(), [&nodes](const RewriteStep& step) {
          return std::find(nodes.begin(), nodes.end(), step.node) != nodes.end();
        });
    if (is_changed) groups.insert(static_cast<int>(g));
  }
  EngineAction action = MakeAction(context, schedule, groups, type, std::move(text));
  // Joins the other groups anew, too.
  action.arguments = {{"scope", "plan"}, {"rewrites", Join(steps, ",", [](const auto& step) {
                                            return Concat(step.rewrite, ":", step.node);
                                          })}};
  if (mapping == StartMapping::kIeee) action.arguments["precision"] = "ieee";
  return {std::move(action), [&context, &schedule, steps, mapping] {
            return Rewritten(context, schedule, steps, mapping).value_or(schedule);
          }};
}

// As it is, and with products in FP32 throughout where that makes a difference.
void AddRewritings(const ScheduleContext& context, const Schedule& schedule,
                   const std::vector<RewriteStep>& steps, const std::string& type,
                   const std::string& text, std::vector<LegalAction>& actions) {
  const bool is_ieee = IsIeee(schedule);
  actions.push_back(MakeRewriting(context, schedule, steps, type, text,
                                  is_ieee ? StartMapping::kIeee : StartMapping::kEager));
  if (is_ieee || !MayBeRounded(context)) return;
  actions.push_back(MakeRewriting(context, schedule, steps, type,
                                  Concat(text, ", with products in FP32 throughout"),
                                  StartMapping::kIeee));
}

// Rewrites of a kind, and what the actions that make them are called.
struct Family {
  Rewrite::Kind kind;
  std::string type;
  std::function<std::string(size_t steps)> text_of_all;
  std::function<std::string(const RewriteStep& step)> text_of_one;
};

// All that can be made one after the other, where that is more than one, and each alone.
std::vector<LegalAction> Enumerate(const ScheduleContext& context, const Schedule& schedule,
                                   const Family& family) {
  std::vector<LegalAction> actions;
  const std::vector<RewriteStep> next = FindRewriteSteps(context.graph, family.kind);
  if (next.empty()) return actions;
  const std::vector<RewriteStep> all = FindAllRewriteSteps(context.graph, family.kind);
  if (all.size() > 1) {
    AddRewritings(context, schedule, all, family.type, family.text_of_all(all.size()), actions);
  }
  for (const RewriteStep& step : next) {
    AddRewritings(context, schedule, {step}, family.type, family.text_of_one(step), actions);
  }
  return actions;
}

}  // namespace

std::vector<LegalAction> EnumerateSimplifications(const ScheduleContext& context,
                                                  const Schedule& schedule) {
  return Enumerate(context, schedule,
                   {.kind = Rewrite::Kind::kAlgebra,
                    .type = "simplify",
                    .text_of_all =
                        [](size_t steps) {
                          return Concat("simplify whatever algebra can, in ", steps, " steps");
                        },
                    .text_of_one =
                        [](const RewriteStep& step) {
                          return Concat("simplify ", step.node, ": ",
                                        FindRewrite(step.rewrite)->summary);
                        }});
}

std::vector<LegalAction> EnumerateLayouts(const ScheduleContext& context,
                                          const Schedule& schedule) {
  if (!context.allow_library) return {};
  return Enumerate(context, schedule,
                   {.kind = Rewrite::Kind::kLayout,
                    .type = "reorder",
                    .text_of_all =
                        [](size_t steps) {
                          return Concat("reorder all ", steps,
                                        " convolutions and poolings to channels last");
                        },
                    .text_of_one =
                        [](const RewriteStep& step) {
                          return Concat("reorder ", step.node, " to channels last");
                        }});
}

}  // namespace mtmc::kernel
