// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernel/action/partition.h"

namespace mtmc::kernel {

// One legal action in domain form; converted to `mtmc.v1.Action` at the door.
struct EngineAction {
  // `fuse`, `tile`, `vectorize`, `reorder`, `split`, `tensorize`, `simplify`, `library`, `capture`,
  // `tune` or `stop`.
  std::string type;
  std::vector<std::string> kernels;
  std::vector<std::string> nodes;
  int first_line = 0;
  int last_line = 0;
  // `scope` is `plan` where it changes more than the kernels of its region.
  std::map<std::string, std::string> arguments;
  // Stable and readable, such as `fuse gelu into linear_1 (lines 21-24)`;
  // unique among the actions of one program.
  std::string text;
};

// An action with what it does to the schedule.
struct LegalAction {
  EngineAction action;
  std::function<Schedule()> apply;
};

// An action on these groups, with their names, nodes and lines as its region; the
// lines end the text.
EngineAction MakeAction(const ScheduleContext& context, const Schedule& schedule,
                        const std::set<int>& groups, std::string type, std::string text);

}  // namespace mtmc::kernel
