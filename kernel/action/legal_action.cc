// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/legal_action.h"

#include <utility>

#include "kernel/graph/text.h"
#include "kernel/writer/source_comment.h"

namespace mtmc::kernel {

EngineAction MakeAction(const ScheduleContext& context, const Schedule& schedule,
                        const std::set<int>& groups, std::string type, std::string text) {
  EngineAction action{.type = std::move(type)};
  for (const int member : groups) {
    const KernelGroup& group = schedule.groups[static_cast<size_t>(member)];
    action.kernels.push_back(group.name);
    action.nodes.insert(action.nodes.end(), group.nodes.begin(), group.nodes.end());
  }
  const SourceLines lines = LinesOf(context.graph, action.nodes);
  action.first_line = lines.first;
  action.last_line = lines.last;
  const std::string where = ToText(lines);
  action.text = where.empty() ? std::move(text) : Concat(text, " ", where);
  return action;
}

}  // namespace mtmc::kernel
