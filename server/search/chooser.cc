// SPDX-License-Identifier: Apache-2.0
#include "server/search/chooser.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "server/search/at_once.h"
#include "server/search/await.h"
#include "server/search/event_loop.h"
#include "server/search/mix.h"
#include "server/search/question.h"
#include "server/search/shared_graph.h"
#include "server/search/tuned_records.h"
#include "server/store/job_store.h"

namespace mtmc::search {

using boost::asio::awaitable;

namespace {

v1::SearchState& StateOf(v1::ChooseActionRequest& request) {
  return *request.mutable_search_state();
}

}  // namespace

awaitable<absl::StatusOr<Asked<v1::ChooseActionRequest>>> Chooser::Question(
    const Selection& selection) {
  const v1::Candidate& parent = run_.CandidateOf(selection.parent);
  const auto program = co_await run_.ReadProgram(parent);
  if (!program.ok()) co_return program.status();
  const auto actions = co_await run_.coder.ListActions(parent, *program);
  if (!actions.ok()) {
    if (run_.interruption.is_set()) co_return actions.status();
    run_.ending = FailedBecause(actions.status(), "ACTIONS_NOT_LISTED");
    co_return std::make_shared<v1::ChooseActionRequest>();
  }
  auto request = std::make_unique<v1::ChooseActionRequest>();
  request->set_policy(run_.job.search().mtmc().policy());
  request->set_job(run_.job.name());
  request->set_creator(run_.job.creator());
  request->set_temperature(run_.job.search().mtmc().temperature());
  request->set_seed(ForkSeed(run_.job.search().seed(),
                             absl::StrCat("policy of rollout ", selection.rollout),
                             run_.lineage.trials()));
  for (v1::Action& action : LegalActions(run_.job, run_.lineage, selection, *actions)) {
    *request->add_actions() = std::move(action);
  }
  *request->mutable_search_state() = MakeSearchState(run_.job, run_.lineage, selection, *program);
  if (request->search_state().has_graph())
    co_return Asked<v1::ChooseActionRequest>(std::move(request));
  co_return WithGraph(run_.journal.graph(), std::move(request), StateOf);
}

awaitable<MacroStep> Chooser::Decide(int parent, const Asked<v1::ChooseActionRequest>& asked,
                                     std::vector<std::string>& notices) {
  if (!run_.strategy->joins_steps()) co_return co_await Choose(asked, notices);
  const v1::ChooseActionRequest& request = *asked;
  const auto decided = [&request](v1::Action action, const std::string& policy) {
    v1::ChooseActionRequest known;
    known.set_seed(request.seed());
    *known.add_actions() = std::move(action);
    return DrawStep(known, policy, {1.0});
  };
  if (std::optional<v1::Action> recalled = RecallRecords(parent)) {
    co_return decided(*std::move(recalled), "recalled");
  }
  if (std::optional<v1::Action> mix = FindMix(run_.lineage, parent)) {
    co_return decided(*std::move(mix), "measured");
  }
  MacroStep step = co_await Choose(asked, notices);
  step.action =
      JoinSteps(run_.lineage, parent, step, {request.actions().begin(), request.actions().end()});
  co_return step;
}

// What earlier jobs learned comes before all else. A store that does not answer costs no job
// its search.
std::optional<v1::Action> Chooser::RecallRecords(int parent) {
  const bool is_first = parent == 0 && run_.lineage.candidates.size() == 1;
  if (!is_first || run_.job.search().omit_records()) return std::nullopt;
  const Recall recall(run_.job, run_.CandidateOf(0));
  const std::vector<std::string> anchors = recall.Anchors();
  if (anchors.empty()) return std::nullopt;
  const std::string project = run_.options.shares_across_projects ? "" : ProjectOf(run_.job);
  const auto records = run_.tools.store.FindRecords(project, anchors);
  if (!records.ok()) {
    base::Log(base::LogLevel::kWarning, "a job does without what earlier ones learned",
              {{"job", run_.name}, {"reason", records.status()}});
    return std::nullopt;
  }
  return recall.Step(*records);
}

// Draws the action: by the strategy itself, by the policy service, or by the
// rules in this process when the service does not answer well.
awaitable<MacroStep> Chooser::Choose(const Asked<v1::ChooseActionRequest>& asked,
                                     std::vector<std::string>& notices) {
  const v1::ChooseActionRequest& request = *asked;
  const std::vector<v1::Action> actions(request.actions().begin(), request.actions().end());
  if (actions.size() == 1) co_return DrawStep(request, run_.strategy->name(), {1.0});
  if (const auto probabilities = run_.strategy->Distribution(actions)) {
    co_return DrawStep(request, run_.strategy->name(), *probabilities);
  }
  const auto answer = co_await Await<v1::ChooseActionResponse>(
      run_.tools.loop, run_.interruption, [this, &asked](Done<v1::ChooseActionResponse> done) {
        const base::TraceScope scope(run_.trace.context());
        run_.tools.policy.ChooseAction(asked, std::move(done));
      });
  const absl::Status status = answer.ok() ? CheckAnswer(request, *answer) : answer.status();
  if (status.ok()) {
    if (is_policy_down_) notices.push_back("the policy service decides again");
    is_policy_down_ = false;
    co_return FromAnswer(request, *answer);
  }
  if (!run_.interruption.is_set()) {
    run_.tools.observer.OnFallback(absl::IsDeadlineExceeded(status) ? "deadline"
                                   : absl::IsUnavailable(status)    ? "unavailable"
                                   : answer.ok()                    ? "invalid"
                                                                    : "error");
    if (!is_policy_down_) {
      notices.push_back(absl::StrCat("the rules decide instead of policy `", request.policy(),
                                     "`: ", status.message()));
    }
    is_policy_down_ = true;
  }
  co_return FallBack(request);
}

}  // namespace mtmc::search
