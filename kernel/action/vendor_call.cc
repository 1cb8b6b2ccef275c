// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/vendor_call.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "kernel/graph/text.h"

namespace mtmc::kernel {
namespace {

// The node that gave the group its kind: the one a vendor has a call for. Null when
// there is none or are several.
const GraphNode* FindAnchor(const ScheduleContext& context, const KernelGroup& group) {
  const GraphNode* anchor = nullptr;
  for (const GraphNode& node : context.graph.nodes) {
    if (std::find(group.nodes.begin(), group.nodes.end(), node.name) == group.nodes.end()) {
      continue;
    }
    const std::vector<const Loop*>& loops = context.index.LoopsOf(node.name);
    const bool is_plain = std::all_of(loops.begin(), loops.end(), [](const Loop* loop) {
      return loop->form == Loop::Form::kMap;
    });
    if (is_plain) continue;
    if (anchor != nullptr) return nullptr;
    anchor = &node;
  }
  return anchor;
}

// Groups of our own for the nodes before and after the one that `call` computes;
// false when a part has no template.
bool SplitOff(const ScheduleContext& context, const KernelGroup& group, const KernelGroup& call,
              std::vector<KernelGroup>& parts) {
  const int position = context.index.PositionOf(call.nodes[0]);
  for (const bool is_after : {false, true}) {
    KernelGroup part{.name = Concat(call.name, is_after ? "_after" : "_before")};
    for (const std::string& node : group.nodes) {
      const int at = context.index.PositionOf(node);
      if (at != position && (at > position) == is_after) part.nodes.push_back(node);
    }
    if (part.nodes.empty()) continue;
    const KernelTemplate* printer = FindOwnTemplate(context, part.nodes);
    if (printer == nullptr) return false;
    part.template_name = printer->name;
    parts.push_back(std::move(part));
  }
  return true;
}

}  // namespace

std::vector<LegalAction> EnumerateCalls(const ScheduleContext& context, const Schedule& schedule,
                                        bool allow_tf32) {
  std::vector<LegalAction> actions;
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const KernelGroup& now = schedule.groups[g];
    const GraphNode* anchor = FindAnchor(context, now);
    if (anchor == nullptr) continue;
    KernelGroup call{.name = now.nodes.size() == 1 ? now.name : anchor->name,
                     .nodes = {anchor->name}};
    std::vector<KernelGroup> rest;
    if (!SplitOff(context, now, call, rest)) continue;
    for (const KernelTemplate* printer : Templates()) {
      if (!printer->is_call) continue;
      call.template_name = printer->name;
      const GroupView view = ViewOf(context, call);
      if (!printer->accepts(view, context.target)) continue;
      for (CallOffer& offer : printer->offers(view, context.target, allow_tf32)) {
        call.precision = offer.precision;
        const bool is_present =
            now.template_name == call.template_name && now.precision == call.precision;
        if (is_present) continue;
        const std::set<int> members = {static_cast<int>(g)};
        EngineAction action = MakeAction(context, schedule, members, "library",
                                         Concat("library ", now.name, " ", offer.text,
                                                rest.empty() ? "" : " and the rest apart"));
        action.arguments = std::move(offer.arguments);
        std::vector<KernelGroup> groups = {call};
        groups.insert(groups.end(), rest.begin(), rest.end());
        actions.push_back({std::move(action), [&context, &schedule, members, groups] {
                             return ReplaceGroups(context, schedule, members, groups);
                           }});
      }
    }
  }
  return actions;
}

}  // namespace mtmc::kernel
