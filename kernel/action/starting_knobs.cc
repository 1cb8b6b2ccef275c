// SPDX-License-Identifier: Apache-2.0
#include "kernel/action/starting_knobs.h"

namespace mtmc::kernel {

Knobs StartingKnobs(const ScheduleContext& context, const KernelGroup& group) {
  KernelGroup plain = group;
  plain.knobs.clear();
  GroupView view = ViewOf(context, plain);
  const KernelGroup complete = WithAllKnobs(view, context.target);
  view.group = &complete;
  Knobs chosen = TemplateOf(complete).starting_knobs(view, context.target);
  std::erase_if(chosen, [&complete](const auto& knob) {
    const auto usual = complete.knobs.find(knob.first);
    return usual != complete.knobs.end() && usual->second == knob.second;
  });
  return chosen;
}

}  // namespace mtmc::kernel
