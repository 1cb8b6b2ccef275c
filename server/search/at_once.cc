// SPDX-License-Identifier: Apache-2.0
#include "server/search/at_once.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/search/group_times.h"

namespace mtmc::search {
namespace {

constexpr char kSteps[] = "steps";

bool IsJoined(const v1::Action& action) { return action.arguments().contains(kSteps); }

// Sweeps multiply, and what is no step on groups goes with nothing.
bool MayJoin(const v1::Action& action) {
  if (action.arguments().contains("scope")) return false;
  switch (action.type()) {
    case v1::Action::TYPE_FUSE:
    case v1::Action::TYPE_TILE:
    case v1::Action::TYPE_REORDER:
    case v1::Action::TYPE_VECTORIZE:
    case v1::Action::TYPE_SPLIT:
    case v1::Action::TYPE_LIBRARY:
    case v1::Action::TYPE_TENSORIZE:
    case v1::Action::TYPE_PIPELINE:
      return !action.region().kernels().empty();
    default:
      return false;
  }
}

std::map<std::string, kernel::KernelGroup> GroupsOf(const v1::Candidate& candidate) {
  std::map<std::string, kernel::KernelGroup> groups;
  if (candidate.schedule().empty()) return groups;
  const auto schedule = kernel::ParseSchedule(candidate.schedule());
  if (!schedule.ok()) return groups;
  for (const kernel::KernelGroup& group : schedule->groups) groups[group.name] = group;
  return groups;
}

bool HasFailedAtOnce(const Lineage& lineage, const v1::Candidate& parent) {
  return std::any_of(
      lineage.candidates.begin(), lineage.candidates.end(), [&](const v1::Candidate& candidate) {
        if (candidate.parents().empty() || !IsJoined(candidate.action())) return false;
        const auto& from = lineage.candidates[static_cast<size_t>(ParentTrial(candidate))];
        return !IsCorrect(candidate) && from.program().sha256() == parent.program().sha256();
      });
}

}  // namespace

std::vector<std::string> StepsOf(const v1::Action& action) {
  const auto steps = action.arguments().find(kSteps);
  if (steps == action.arguments().end()) return {action.text()};
  return absl::StrSplit(steps->second, '\n');
}

bool HasStep(const v1::Action& action, const std::string& step) {
  if (!IsJoined(action)) return action.text() == step;
  const std::vector<std::string> steps = StepsOf(action);
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

bool IsJudged(const Lineage& lineage, int parent, const v1::Action& step) {
  if (!MayJoin(step)) return false;
  for (const v1::Candidate& candidate : lineage.candidates) {
    if (candidate.parents().empty()) continue;
    // First what costs least: schedules are long, and most steps were never taken.
    if (!HasStep(candidate.action(), step.text())) continue;
    if (!TimeGroups(candidate)) continue;
    const auto now = GroupsOf(lineage.candidates[static_cast<size_t>(parent)]);
    const auto then = GroupsOf(lineage.candidates[static_cast<size_t>(ParentTrial(candidate))]);
    const auto& kernels = step.region().kernels();
    const bool is_same = std::all_of(kernels.begin(), kernels.end(), [&](const auto& kernel) {
      const auto here = now.find(kernel);
      const auto there = then.find(kernel);
      return here != now.end() && there != then.end() && here->second == there->second;
    });
    if (is_same) return true;
  }
  return false;
}

v1::Action JoinSteps(const Lineage& lineage, int parent, const MacroStep& drawn,
                     const std::vector<v1::Action>& legal) {
  const v1::Candidate& from = lineage.candidates[static_cast<size_t>(parent)];
  if (!MayJoin(drawn.action) || !TimeGroups(from) || HasFailedAtOnce(lineage, from)) {
    return drawn.action;
  }
  std::map<std::string, const v1::Action*> by_text;
  for (const v1::Action& action : legal) by_text[action.text()] = &action;
  v1::Action joined = drawn.action;
  std::vector<std::string> steps = {drawn.action.text()};
  const auto& first = drawn.action.region().kernels();
  std::set<std::string> used(first.begin(), first.end());
  for (const auto& choice : drawn.decision.choices()) {
    const auto found = by_text.find(choice.action());
    if (found == by_text.end() || !MayJoin(*found->second)) continue;
    const v1::Region& region = found->second->region();
    const bool is_free =
        std::none_of(region.kernels().begin(), region.kernels().end(),
                     [&used](const std::string& kernel) { return used.contains(kernel); });
    if (!is_free || IsJudged(lineage, parent, *found->second)) continue;
    used.insert(region.kernels().begin(), region.kernels().end());
    steps.push_back(choice.action());
    joined.mutable_region()->mutable_kernels()->MergeFrom(region.kernels());
    joined.mutable_region()->mutable_nodes()->MergeFrom(region.nodes());
  }
  if (steps.size() == 1) return drawn.action;
  joined.mutable_region()->clear_first_line();
  joined.mutable_region()->clear_last_line();
  joined.set_text(absl::StrCat(drawn.action.text(), " and ", steps.size() - 1,
                               steps.size() == 2 ? " more step" : " more steps", " at once"));
  (*joined.mutable_arguments())[kSteps] = absl::StrJoin(steps, "\n");
  return joined;
}

}  // namespace mtmc::search
