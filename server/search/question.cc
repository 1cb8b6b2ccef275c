// SPDX-License-Identifier: Apache-2.0
#include "server/search/question.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "server/search/at_once.h"
#include "server/search/rewritten.h"

namespace mtmc::search {
namespace {

constexpr int kTriesOfLanguageModel = 2;

// How often each step was tried on the program of `parent`. Steps at once that failed tell of
// none of them.
std::unordered_map<std::string, int> TriesOn(const Lineage& lineage, const v1::Candidate& parent) {
  std::unordered_map<std::string, int> tries;
  for (const v1::Candidate& candidate : lineage.candidates) {
    if (candidate.parents().empty()) continue;
    const auto& other = lineage.candidates[static_cast<size_t>(ParentTrial(candidate))];
    if (other.program().sha256() != parent.program().sha256()) continue;
    const std::vector<std::string> steps = StepsOf(candidate.action());
    if (steps.size() > 1 && !IsCorrect(candidate)) continue;
    for (const std::string& step : steps) ++tries[step];
  }
  return tries;
}

bool IsForbidden(const v1::SearchOptions& options, v1::Action::Type type) {
  return (type == v1::Action::TYPE_SIMPLIFY && !options.allow_simplify()) ||
         (type == v1::Action::TYPE_LIBRARY && !options.allow_library());
}

}  // namespace

std::vector<v1::Action> LegalActions(const v1::Job& job, const Lineage& lineage,
                                     const Selection& selection,
                                     const v1::ListActionsResponse& listed) {
  const auto tries = TriesOn(lineage, lineage.candidates[static_cast<size_t>(selection.parent)]);
  const int most_tries = job.search().coder() == "llm" ? kTriesOfLanguageModel : 1;
  const auto is_spent = [&](const v1::Action& action) {
    const auto found = tries.find(action.text());
    return found != tries.end() && found->second >= most_tries;
  };
  std::vector<v1::Action> legal;
  v1::Action stop;
  stop.set_type(v1::Action::TYPE_STOP);
  stop.set_text("stop");
  for (const v1::Action& action : listed.actions()) {
    if (action.type() == v1::Action::TYPE_STOP) {
      stop = action;
    } else if (!IsForbidden(job.search(), action.type()) && !is_spent(action)) {
      legal.push_back(action);
    }
  }
  // What is known needs no trial, as long as there is something that is not.
  const auto known = std::stable_partition(
      legal.begin(), legal.end(),
      [&](const v1::Action& action) { return !IsJudged(lineage, selection.parent, action); });
  if (known != legal.begin()) legal.erase(known, legal.end());
  if (legal.empty() || selection.step > 0) legal.push_back(std::move(stop));
  return legal;
}

v1::SearchState MakeSearchState(const v1::Job& job, const Lineage& lineage,
                                const Selection& selection, const v1::Program& program) {
  const v1::Candidate& parent = lineage.candidates[static_cast<size_t>(selection.parent)];
  v1::SearchState state;
  *state.mutable_program() = program;
  *state.mutable_evaluation() = parent.evaluation();
  if (IsRewritten(parent)) {
    *state.mutable_graph() = RewrittenGraph(job.inspection().graph(), parent);
    if (state.evaluation().has_profile()) {
      state.mutable_evaluation()->mutable_profile()->clear_speed_of_light_ratio();
    }
  } else {
    state.set_contraction_flops(job.inspection().contraction_flops());
  }
  *state.mutable_device() = job.device();
  for (const Selection::Past& past : selection.history) {
    const v1::Candidate& candidate = lineage.candidates[static_cast<size_t>(past.trial)];
    auto* step = state.add_history();
    step->set_action(candidate.action().text());
    step->set_outcome(ToText(past.outcome));
    if (const auto speedup = Speedup(candidate)) step->set_speedup(*speedup);
  }
  state.set_remaining_steps(std::max(1, MaxSteps(job.search()) - selection.step));
  state.set_minimum_bytes(job.inspection().minimum_bytes());
  state.set_precision(job.problem().precision());
  return state;
}

}  // namespace mtmc::search
