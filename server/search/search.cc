// SPDX-License-Identifier: Apache-2.0
#include "server/search/search.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"
#include "kernel/graph/operators.h"
#include "server/search/at_once.h"
#include "server/search/await.h"
#include "server/search/backends.h"
#include "server/search/event_loop.h"
#include "server/search/fingerprint.h"
#include "server/search/journal.h"
#include "server/search/lineage.h"
#include "server/search/macro_step.h"
#include "server/search/mix.h"
#include "server/search/patient_coder.h"
#include "server/search/question.h"
#include "server/search/reward.h"
#include "server/search/strategy.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"

namespace mtmc::search {
namespace {

using boost::asio::awaitable;
using google::protobuf::util::TimeUtil;

constexpr int64_t kMaxProgramBytes = 16 << 20;
// Between two looks of a paused job, which is woken when there is something to see.
constexpr absl::Duration kLongWait = absl::Hours(1);

// Why and how a job ends.
struct Ending {
  v1::Job::EndReason reason = v1::Job::END_REASON_UNSPECIFIED;
  std::optional<v1::JobFailure> failure;
};

Ending FailedBecause(const std::string& reason, const std::string& message) {
  Ending ending{.reason = v1::Job::END_REASON_FAILED, .failure = v1::JobFailure()};
  ending.failure->set_reason(reason);
  ending.failure->set_message(message);
  return ending;
}

// For an error of a service that another try would not cure.
Ending FailedBecause(const absl::Status& status, const std::string& otherwise) {
  const std::string reason = rpc::ErrorReason(status);
  return FailedBecause(reason.empty() ? otherwise : reason, std::string(status.message()));
}

// Whether no later step will fare better with the coder than the one that got `status`.
bool IsForGood(const absl::Status& status) {
  const std::string reason = rpc::ErrorReason(status);
  return reason == "CODER_REFUSED" || reason == "CODER_NOT_FOUND" || reason == "MODEL_NOT_SET" ||
         reason == "REPLAY_MISSING";
}

absl::Duration ToAbsl(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

// Device time of an evaluation: from the start of its first stage to the end of
// its last one.
google::protobuf::Duration BusyTime(const v1::Evaluation& evaluation) {
  if (evaluation.spans().empty()) return {};
  return evaluation.spans().rbegin()->end_time() - evaluation.spans(0).start_time();
}

}  // namespace

class Search::Impl {
 public:
  Impl(std::string job, const Options& options, const SearchTools& tools)
      : name_(job),
        options_(options),
        tools_(tools),
        journal_(std::move(job), options, tools, interruption_),
        coder_(options, tools, journal_, interruption_) {}

  void Start(std::function<void(absl::Status)> on_end) {
    boost::asio::co_spawn(
        tools_.loop.context(), Run(),
        [on_end = std::move(on_end)](std::exception_ptr error, absl::Status status) {
          on_end(error ? absl::InternalError("the search threw") : std::move(status));
        });
  }

  absl::StatusOr<v1::Job> Cancel() {
    const absl::StatusOr<v1::Job> job = journal_.RecordCancelling();
    if (job.ok() && job->state() == v1::Job::STATE_CANCELLING)
      Interrupt(v1::Job::END_REASON_CANCELLED);
    return job;
  }

  absl::StatusOr<v1::Job> Rest() {
    if ((ending_ || has_reason_to_end()) && !HasEnded(job_)) return AlreadyEnding(name_);
    const absl::StatusOr<v1::Job> job = journal_.RecordPaused();
    if (!job.ok() || job->state() != v1::Job::STATE_PAUSED) return job;
    DisarmWallTime();
    const bool is_worth_waiting =
        coder_.is_writing() || (!submitted_.empty() && tools_.evaluator.HasBegun(submitted_));
    if (is_worth_waiting) return job;
    // Now: a worker may call before the coroutine has its turn.
    if (!submitted_.empty()) tools_.evaluator.Abandon(submitted_, name_);
    // Without a reason: it goes on.
    interruption_.Set();
    return job;
  }

  absl::StatusOr<v1::Job> GoOn() {
    const bool was_paused = journal_.is_paused();
    const absl::StatusOr<v1::Job> job = journal_.RecordResumed();
    if (!was_paused || journal_.is_paused()) return job;
    // It may not have come to rest yet, and then goes on as if nothing had been.
    if (job_.has_start_time()) ArmWallTime();
    interruption_.Wake();
    return job;
  }

  v1::Job::State state() const {
    return job_.state() == v1::Job::STATE_UNSPECIFIED ? v1::Job::STATE_PENDING : job_.state();
  }

 private:
  // The story of a job, from its first line again after each pause.
  awaitable<absl::Status> Run() {
    while (true) {
      absl::Status status = co_await journal_.Load();
      if (!status.ok() || HasEnded(job_)) co_return status;
      status = co_await RunToRest();
      if (!status.ok() && !interruption_.is_set()) co_return status;
      if (!ending_) co_await AwaitResume();
      if (has_reason_to_end()) ending_ = Ending{.reason = interruption_reason_};
      if (ending_) co_return co_await Finish();
      interruption_.Clear();
    }
  }

  // Until there is an ending, an interruption or a pause.
  awaitable<absl::Status> RunToRest() {
    strategy_ = MakeStrategy(job_);
    if (job_.state() == v1::Job::STATE_CANCELLING) Interrupt(v1::Job::END_REASON_CANCELLED);
    absl::Status status;
    if (!journal_.is_paused()) status = co_await ChooseDevice();
    if (status.ok() && !journal_.is_paused()) status = co_await Inspect();
    while (status.ok() && !ending_ && !journal_.is_paused()) {
      if (lineage_.candidates.empty()) {
        status = co_await BeginStart();
      } else if (!IsFinished(lineage_.candidates.back())) {
        status = co_await FinishTrial(lineage_.candidates.back());
      } else {
        status = co_await NextTrial();
      }
    }
    co_return status;
  }

  // At once when the job is not paused, or no longer.
  awaitable<void> AwaitResume() {
    while (journal_.is_paused() && !has_reason_to_end()) {
      interruption_.Clear();
      co_await WaitFor(tools_.loop, interruption_, kLongWait);
    }
  }

  // Waits for a worker that matches; with it the search starts.
  awaitable<absl::Status> ChooseDevice() {
    if (job_.has_start_time()) {
      ArmWallTime();
      co_return absl::OkStatus();
    }
    std::optional<DeviceChoice> choice = tools_.evaluator.FindDevice(job_);
    std::string told;
    // A worker that is just starting is no news.
    for (int polls = 0; !choice && !interruption_.is_set(); ++polls) {
      const std::string why = polls < 10 ? "" : tools_.evaluator.WhyNoDevice(job_);
      if (!why.empty() && why != told) journal_.RecordWaiting(why);
      told = why;
      co_await WaitFor(tools_.loop, interruption_, options_.device_poll);
      choice = tools_.evaluator.FindDevice(job_);
    }
    if (!choice || interruption_.is_set()) co_return absl::CancelledError("interrupted");
    *job_.mutable_device() = choice->device;
    job_.set_dialect(choice->dialect);
    job_.set_state(v1::Job::STATE_RUNNING);
    *job_.mutable_start_time() = journal_.Now();
    ArmWallTime();
    co_return co_await journal_.RecordJob();
  }

  awaitable<absl::Status> Inspect() {
    if (job_.has_inspection()) co_return absl::OkStatus();
    Work work = NewWork("");
    auto* request = work.lease.mutable_inspection();
    *request->mutable_problem() = job_.problem();
    *request->mutable_baselines() = job_.evaluation().baselines();
    request->set_min_isolation(job_.evaluation().min_isolation());
    work.key = InspectionKey(*request, job_.device());
    absl::StatusOr<std::optional<v1::Inspection>> known = tools_.store.FindInspection(work.key);
    if (!known.ok()) co_return known.status();
    const std::string key = work.key;
    if (*known) {
      *job_.mutable_inspection() = **std::move(known);
    } else {
      absl::StatusOr<v1::LeaseResult> result = co_await Submit(std::move(work));
      if (!result.ok()) co_return result.status();
      if (result->has_problem_failure()) {
        ending_ =
            Ending{.reason = v1::Job::END_REASON_FAILED, .failure = result->problem_failure()};
        co_return absl::OkStatus();
      }
      *job_.mutable_inspection() = std::move(*result->mutable_inspection());
    }
    co_return co_await journal_.RecordInspection(key);
  }

  awaitable<absl::Status> BeginStart() {
    co_return co_await journal_.RecordCandidate(NewCandidate(0), {});
  }

  // Selects, chooses, and records the choice: a new trial, or a stop.
  awaitable<absl::Status> NextTrial() {
    if (job_.budget().max_tokens() > 0 &&
        job_.budget_use().tokens() >= job_.budget().max_tokens()) {
      ending_ = Ending{.reason = v1::Job::END_REASON_TOKENS};
      co_return absl::OkStatus();
    }
    const auto next = strategy_->Next(lineage_);
    if (const End* end = std::get_if<End>(&next)) {
      ending_ = Ending{.reason = end->reason};
      co_return absl::OkStatus();
    }
    const Selection selection = std::get<Selection>(next);
    absl::StatusOr<v1::ChooseActionRequest> request = co_await Question(selection);
    if (!request.ok() || ending_) co_return request.status();
    std::vector<std::string> notices;
    const MacroStep step = co_await Decide(selection.parent, *request, notices);
    if (interruption_.is_set()) co_return absl::CancelledError("interrupted");
    absl::Status status;
    if (step.action.type() == v1::Action::TYPE_STOP) {
      status = co_await journal_.RecordStop(step.decision, notices);
    } else {
      v1::Candidate candidate = NewCandidate(lineage_.trials() + 1);
      candidate.add_parents(lineage_.candidates[static_cast<size_t>(selection.parent)].name());
      *candidate.mutable_action() = step.action;
      *candidate.mutable_decision() = step.decision;
      candidate.mutable_decision()->set_rollout(selection.rollout);
      candidate.mutable_decision()->set_step(selection.step);
      job_.mutable_budget_use()->set_trials(candidate.trial());
      status = co_await journal_.RecordCandidate(candidate, notices);
    }
    if (status.ok()) tools_.observer.OnDecision(step.decision, step.action.type());
    co_return status;
  }

  // The search state and its legal, untried actions.
  awaitable<absl::StatusOr<v1::ChooseActionRequest>> Question(const Selection& selection) {
    const v1::Candidate& parent = lineage_.candidates[static_cast<size_t>(selection.parent)];
    const auto program = ReadProgram(parent);
    if (!program.ok()) co_return program.status();
    const auto actions = co_await coder_.ListActions(parent, *program);
    v1::ChooseActionRequest request;
    if (!actions.ok()) {
      if (interruption_.is_set()) co_return actions.status();
      ending_ = FailedBecause(actions.status(), "ACTIONS_NOT_LISTED");
      co_return request;
    }
    request.set_policy(job_.search().mtmc().policy());
    request.set_temperature(job_.search().mtmc().temperature());
    request.set_seed(ForkSeed(job_.search().seed(),
                              absl::StrCat("policy of rollout ", selection.rollout),
                              lineage_.trials()));
    for (v1::Action& action : LegalActions(job_, lineage_, selection, *actions)) {
      *request.add_actions() = std::move(action);
    }
    *request.mutable_search_state() = MakeSearchState(job_, lineage_, selection, *program);
    co_return request;
  }

  // The fastest mix of what was measured, if it promises more than what is there; else the drawn
  // action, with one on every other group.
  awaitable<MacroStep> Decide(int parent, const v1::ChooseActionRequest& request,
                              std::vector<std::string>& notices) {
    if (!strategy_->joins_steps()) co_return co_await Choose(request, notices);
    if (std::optional<v1::Action> mix = FindMix(lineage_, parent)) {
      v1::ChooseActionRequest known;
      known.set_seed(request.seed());
      *known.add_actions() = *std::move(mix);
      co_return DrawStep(known, "measured", {1.0});
    }
    MacroStep step = co_await Choose(request, notices);
    step.action =
        JoinSteps(lineage_, parent, step, {request.actions().begin(), request.actions().end()});
    co_return step;
  }

  // Draws the action: by the strategy itself, by the policy service, or by the
  // rules in this process when the service does not answer well.
  awaitable<MacroStep> Choose(const v1::ChooseActionRequest& request,
                              std::vector<std::string>& notices) {
    const std::vector<v1::Action> actions(request.actions().begin(), request.actions().end());
    if (actions.size() == 1) co_return DrawStep(request, strategy_->name(), {1.0});
    if (const auto probabilities = strategy_->Distribution(actions)) {
      co_return DrawStep(request, strategy_->name(), *probabilities);
    }
    const auto answer = co_await Await<v1::ChooseActionResponse>(
        tools_.loop, interruption_, [this, &request](Done<v1::ChooseActionResponse> done) {
          tools_.policy.ChooseAction(request, std::move(done));
        });
    const absl::Status status = answer.ok() ? CheckAnswer(request, *answer) : answer.status();
    if (status.ok()) {
      if (is_policy_down_) notices.push_back("the policy service decides again");
      is_policy_down_ = false;
      co_return FromAnswer(request, *answer);
    }
    if (!interruption_.is_set()) {
      tools_.observer.OnFallback(absl::IsDeadlineExceeded(status) ? "deadline"
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

  // Codes and evaluates the newest trial, whichever of the two is left to do.
  awaitable<absl::Status> FinishTrial(v1::Candidate candidate) {
    if (candidate.has_program()) co_return co_await Evaluate(std::move(candidate));
    if (candidate.trial() == 0) co_return co_await CodeStart(std::move(candidate));
    co_return co_await CodeStep(std::move(candidate));
  }

  awaitable<absl::Status> CodeStart(v1::Candidate candidate) {
    if (job_.has_start_program()) co_return co_await AdoptStart(std::move(candidate));
    const auto response = co_await coder_.CreateProgram();
    if (!response.ok()) {
      if (interruption_.is_set()) co_return response.status();
      ending_ = FailedBecause(response.status(), "START_PROGRAM_FAILED");
      co_return absl::OkStatus();
    }
    Settle(response->token_use());
    if (!response->has_program()) {
      const auto& failure = response->coder_failure();
      ending_ = FailedBecause(failure.reason().empty() ? "START_PROGRAM_FAILED" : failure.reason(),
                              failure.message());
      candidate.set_state(v1::Candidate::STATE_REJECTED);
      candidate.set_coder_failure(failure.message());
      *candidate.mutable_end_time() = journal_.Now();
      co_return co_await journal_.RecordCandidate(candidate, {});
    }
    co_return co_await RecordProgram(std::move(candidate), response->program());
  }

  // The user has written the start program.
  awaitable<absl::Status> AdoptStart(v1::Candidate candidate) {
    *candidate.mutable_program() = job_.start_program();
    candidate.set_coder("user");
    co_return co_await journal_.RecordCandidate(candidate, {});
  }

  awaitable<absl::Status> CodeStep(v1::Candidate candidate) {
    const auto parent_trial = static_cast<size_t>(ParentTrial(candidate));
    const v1::Candidate parent = lineage_.candidates[parent_trial];
    const auto program = ReadProgram(parent);
    if (!program.ok()) co_return program.status();
    const auto response = co_await coder_.ApplyAction(parent, *program, candidate.action());
    if (!response.ok() && interruption_.is_set()) co_return response.status();
    if (rpc::ErrorReason(response.status()) == "TOKEN_BUDGET_EXHAUSTED") {
      ending_ = Ending{.reason = v1::Job::END_REASON_TOKENS};
      co_return absl::OkStatus();
    }
    if (IsForGood(response.status())) {
      ending_ = FailedBecause(response.status(), "CODER_REFUSED");
      co_return absl::OkStatus();
    }
    if (response.ok()) Settle(response->token_use());
    if (response.ok() && !response->token_use().model().empty()) {
      *candidate.mutable_token_use() = response->token_use();
    }
    if (response.ok() && response->has_program()) {
      co_return co_await RecordProgram(std::move(candidate), response->program());
    }
    const std::string failure = response.ok()
                                    ? absl::StrCat(response->coder_failure().reason(), ": ",
                                                   response->coder_failure().message())
                                    : std::string(response.status().message());
    candidate.set_state(v1::Candidate::STATE_REJECTED);
    candidate.set_coder_failure(failure);
    candidate.set_reward(Reward(parent, candidate, StepOf(candidate)));
    *candidate.mutable_end_time() = journal_.Now();
    co_return co_await journal_.RecordCandidate(candidate, {});
  }

  awaitable<absl::Status> RecordProgram(v1::Candidate candidate, v1::Program program) {
    absl::StatusOr<v1::Digest> digest = tools_.artifacts.Put(program.text());
    while (!digest.ok() && IsPassing(digest.status()) && !interruption_.is_set()) {
      co_await WaitFor(tools_.loop, interruption_, options_.max_backoff);
      digest = tools_.artifacts.Put(program.text());
    }
    if (!digest.ok()) co_return digest.status();
    *candidate.mutable_program() = *digest;
    candidate.set_schedule(program.schedule());
    co_return co_await journal_.RecordCandidate(candidate, {});
  }

  awaitable<absl::Status> Evaluate(v1::Candidate candidate) {
    Work work = NewWork(candidate.name());
    auto* request = work.lease.mutable_evaluation();
    *request->mutable_problem() = job_.problem();
    *request->mutable_program() = candidate.program();
    *request->mutable_options() = job_.evaluation();
    if (job_.search().allow_library()) {
      for (const kernel::Operator& row : kernel::Operators()) {
        if (row.is_callable()) request->add_allowed_calls(std::string(row.name));
      }
    }
    work.key = EvaluationFingerprint(*request, job_.device());
    request->set_fingerprint(work.key);
    // Steps at once are taken for the times of their kernels, which only a winner is asked for.
    const bool is_asked_everything = StepsOf(candidate.action()).size() > 1;
    request->set_speedup_to_beat(is_asked_everything ? 0 : job_.best_speedup());
    const auto known = tools_.store.FindEvaluation(work.key);
    if (!known.ok()) co_return known.status();
    const bool is_own = *known && (*known)->candidate == candidate.name();
    const bool is_hit = *known && (is_own || IsReusable(*request, (*known)->evaluation));
    if (!is_own) tools_.observer.OnCacheLookup(is_hit);
    if (is_hit) {
      *candidate.mutable_evaluation() = (*known)->evaluation;
      candidate.mutable_evaluation()->set_is_cached(!is_own);
    } else {
      work.granted = [this, trial = candidate.trial()] { journal_.RecordRunning(trial); };
      absl::StatusOr<v1::LeaseResult> result = co_await Submit(work);
      // Another job with a higher speedup to beat may have asked for the same just before.
      if (result.ok() && !IsAnswer(*request, result->evaluation())) {
        result = co_await Submit(work);
      }
      if (!result.ok()) co_return result.status();
      *candidate.mutable_evaluation() = std::move(*result->mutable_evaluation());
    }
    co_return co_await RecordEvaluation(std::move(candidate));
  }

  awaitable<absl::Status> RecordEvaluation(v1::Candidate candidate) {
    candidate.set_state(v1::Candidate::STATE_EVALUATED);
    *candidate.mutable_end_time() = journal_.Now();
    if (!candidate.parents().empty()) {
      const auto& parent = lineage_.candidates[static_cast<size_t>(ParentTrial(candidate))];
      candidate.set_reward(Reward(parent, candidate, StepOf(candidate)));
    }
    if (!candidate.evaluation().is_cached()) {
      auto* device_time = job_.mutable_budget_use()->mutable_device_time();
      *device_time += BusyTime(candidate.evaluation());
    }
    if (const auto best = lineage_.BestWith(candidate)) {
      const v1::Candidate& winner =
          *best == candidate.trial() ? candidate : lineage_.candidates[static_cast<size_t>(*best)];
      job_.set_best_candidate(winner.name());
      if (const auto speedup = Speedup(winner)) job_.set_best_speedup(*speedup);
    }
    co_return co_await journal_.RecordCandidate(candidate, {});
  }

  awaitable<absl::Status> Finish() {
    const bool is_cancelled = ending_->reason == v1::Job::END_REASON_CANCELLED;
    // A start program that nobody could work on is not what was asked for.
    const bool has_winner =
        !job_.best_candidate().empty() &&
        !(ending_->failure && job_.best_candidate() == lineage_.candidates.front().name());
    if (!has_winner && !is_cancelled && !ending_->failure) {
      ending_->failure = FailedBecause("NO_CORRECT_CANDIDATE",
                                       "no candidate was verified within the budget; look at the "
                                       "failures of its candidates, or raise the budget")
                             .failure;
    }
    if (ending_->failure) *job_.mutable_failure() = *ending_->failure;
    job_.set_state(is_cancelled ? v1::Job::STATE_CANCELLED
                   : has_winner ? v1::Job::STATE_SUCCEEDED
                                : v1::Job::STATE_FAILED);
    job_.set_end_reason(ending_->reason);
    const absl::Status status = co_await journal_.RecordEnd();
    if (status.ok()) tools_.observer.OnEnd(job_, BestCandidate());
    co_return status;
  }

  const v1::Candidate* BestCandidate() const {
    const auto found = std::find_if(
        lineage_.candidates.begin(), lineage_.candidates.end(),
        [this](const v1::Candidate& each) { return each.name() == job_.best_candidate(); });
    return found == lineage_.candidates.end() ? nullptr : &*found;
  }

  awaitable<absl::StatusOr<v1::LeaseResult>> Submit(Work work) {
    const std::string key = work.key;
    submitted_ = key;
    auto result = co_await Await<v1::LeaseResult>(
        tools_.loop, interruption_, [this, &work](Done<v1::LeaseResult> done) {
          tools_.evaluator.Submit(std::move(work), std::move(done));
        });
    submitted_.clear();
    if (!result.ok()) tools_.evaluator.Abandon(key, name_);
    co_return result;
  }

  absl::StatusOr<v1::Program> ReadProgram(const v1::Candidate& candidate) {
    absl::StatusOr<std::string> text = tools_.artifacts.Read(
        candidate.program(), 0, std::min(candidate.program().size_bytes(), kMaxProgramBytes));
    if (!text.ok()) return text.status();
    v1::Program program;
    program.set_text(*std::move(text));
    program.set_schedule(candidate.schedule());
    return program;
  }

  Work NewWork(const std::string& candidate) {
    Work work;
    work.lease.set_job(name_);
    work.lease.set_candidate(candidate);
    work.demand = fleet::DemandOf(job_);
    work.stuck = [this](const std::string& why) { journal_.RecordWaiting(why); };
    return work;
  }

  v1::Candidate NewCandidate(int trial) const {
    v1::Candidate candidate;
    candidate.set_name(absl::StrCat(name_, "/candidates/c", trial));
    candidate.set_state(v1::Candidate::STATE_PENDING);
    candidate.set_trial(trial);
    candidate.set_coder(job_.search().coder());
    *candidate.mutable_create_time() = journal_.Now();
    return candidate;
  }

  // Step of the rollout in which a candidate was made: what the strategy said
  // when only the trials before it were there.
  int StepOf(const v1::Candidate& candidate) const {
    Lineage before = lineage_;
    before.candidates.resize(static_cast<size_t>(candidate.trial()));
    const auto next = strategy_->Next(before);
    const Selection* selection = std::get_if<Selection>(&next);
    return selection == nullptr ? 0 : selection->step;
  }

  void Settle(const v1::TokenUse& use) {
    auto* budget = job_.mutable_budget_use();
    budget->set_tokens(budget->tokens() + use.input_tokens() + use.output_tokens());
  }

  void ArmWallTime() {
    const absl::Duration rest = std::max(
        ToAbsl(job_.budget().max_wall_time()) - ToAbsl(journal_.WallTime()), absl::ZeroDuration());
    alarm_ = std::make_shared<int>(0);
    tools_.loop.PostAfter(rest, [this, alarm = std::weak_ptr<int>(alarm_)] {
      if (!alarm.expired() && !HasEnded(job_)) Interrupt(v1::Job::END_REASON_WALL_TIME);
    });
  }

  void DisarmWallTime() { alarm_.reset(); }

  bool has_reason_to_end() const { return interruption_reason_ != v1::Job::END_REASON_UNSPECIFIED; }

  void Interrupt(v1::Job::EndReason reason) {
    if (has_reason_to_end()) return;
    interruption_reason_ = reason;
    interruption_.Set();
  }

  const std::string name_;
  const Options options_;
  const SearchTools tools_;
  // Lives as long as the timer of the wall time counts.
  std::shared_ptr<int> alarm_;
  Interruption interruption_;
  // Why the job is to end. Without it, an interruption is a pause.
  v1::Job::EndReason interruption_reason_ = v1::Job::END_REASON_UNSPECIFIED;
  Journal journal_;
  PatientCoder coder_;
  // The journal's: the job with the changes of the next record, and what is
  // recorded of its trials.
  v1::Job& job_ = journal_.job();
  const Lineage& lineage_ = journal_.lineage();
  std::unique_ptr<const Strategy> strategy_;
  std::optional<Ending> ending_;
  // Key of the work that a worker is asked for; empty when there is none.
  std::string submitted_;
  bool is_policy_down_ = false;
};

Search::Search(std::string job, const Options& options, const SearchTools& tools)
    : impl_(std::make_unique<Impl>(std::move(job), options, tools)) {}

Search::~Search() = default;

void Search::Start(std::function<void(absl::Status)> on_end) { impl_->Start(std::move(on_end)); }

v1::Job::State Search::state() const { return impl_->state(); }

absl::StatusOr<v1::Job> Search::Cancel() { return impl_->Cancel(); }

absl::StatusOr<v1::Job> Search::Pause() { return impl_->Rest(); }

absl::StatusOr<v1::Job> Search::Resume() { return impl_->GoOn(); }

}  // namespace mtmc::search
