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
#include "common/config/version.h"
#include "google/protobuf/util/time_util.h"
#include "server/search/await.h"
#include "server/search/chooser.h"
#include "server/search/deferral.h"
#include "server/search/ending.h"
#include "server/search/event_loop.h"
#include "server/search/fingerprint.h"
#include "server/search/journal.h"
#include "server/search/search_run.h"
#include "server/search/strategy.h"
#include "server/search/trial_runner.h"
#include "server/store/job_store.h"

namespace mtmc::search {
namespace {

using boost::asio::awaitable;
using google::protobuf::util::TimeUtil;

// Between two looks of a paused job, which is woken when there is something to see.
constexpr absl::Duration kLongWait = absl::Hours(1);

// Looks for a worker before a job says that it waits for one.
constexpr int kQuietPolls = 10;

}  // namespace

class Search::Impl {
 public:
  Impl(std::string job, const Options& options, const SearchTools& tools)
      : run_(std::move(job), options, tools) {
    run_.allowance.on_used_up = [this] { Interrupt(v1::Job::END_REASON_QUOTA); };
  }

  void Start(std::function<void(absl::Status)> on_end) {
    boost::asio::co_spawn(
        run_.tools.loop.context(), Run(),
        [on_end = std::move(on_end)](std::exception_ptr error, absl::Status status) {
          on_end(error ? absl::InternalError("the search threw") : std::move(status));
        });
  }

  absl::StatusOr<v1::Job> Cancel() {
    const absl::StatusOr<v1::Job> job = run_.journal.RecordCancelling();
    if (job.ok() && job->state() == v1::Job::STATE_CANCELLING)
      Interrupt(v1::Job::END_REASON_CANCELLED);
    return job;
  }

  absl::StatusOr<v1::Job> Rest() {
    if ((run_.ending || has_reason_to_end()) && !HasEnded(run_.job)) {
      return AlreadyEnding(run_.name);
    }
    const absl::StatusOr<v1::Job> job = run_.journal.RecordPaused();
    if (!job.ok() || job->state() != v1::Job::STATE_PAUSED) return job;
    DisarmWallTime();
    const bool is_worth_waiting =
        run_.coder.is_writing() ||
        (!run_.submitted.empty() && run_.tools.evaluator.HasBegun(run_.submitted));
    if (is_worth_waiting) return job;
    // Now: a worker may call before the coroutine has its turn.
    if (!run_.submitted.empty()) run_.tools.evaluator.Abandon(run_.submitted, run_.name);
    // Without a reason: it goes on.
    run_.interruption.Set();
    return job;
  }

  absl::StatusOr<v1::Job> GoOn() {
    const bool was_paused = run_.journal.is_paused();
    const absl::StatusOr<v1::Job> job = run_.journal.RecordResumed();
    if (!was_paused || run_.journal.is_paused()) return job;
    // It may not have come to rest yet, and then goes on as if nothing had been.
    if (run_.job.has_start_time()) ArmWallTime();
    run_.interruption.Wake();
    return job;
  }

  v1::Job::State state() const {
    return run_.job.state() == v1::Job::STATE_UNSPECIFIED ? v1::Job::STATE_PENDING
                                                          : run_.job.state();
  }

 private:
  // The story of a job, from its first line again after each pause.
  awaitable<absl::Status> Run() {
    while (true) {
      absl::Status status = co_await run_.journal.Load();
      if (!status.ok() || HasEnded(run_.job)) co_return status;
      status = co_await RunToRest();
      if (!status.ok() && !run_.interruption.is_set()) co_return status;
      if (!run_.ending) co_await AwaitResume();
      if (has_reason_to_end()) run_.ending = Ending{.reason = interruption_reason_};
      if (run_.ending) co_return co_await Finish();
      run_.interruption.Clear();
    }
  }

  // Until there is an ending, an interruption or a pause.
  awaitable<absl::Status> RunToRest() {
    run_.strategy = MakeStrategy(run_.job);
    if (run_.job.state() == v1::Job::STATE_CANCELLING) Interrupt(v1::Job::END_REASON_CANCELLED);
    absl::Status status;
    if (!run_.journal.is_paused()) status = co_await ChooseDevice();
    if (status.ok() && !run_.journal.is_paused()) status = co_await Inspect();
    while (status.ok() && !run_.ending && !run_.journal.is_paused()) {
      if (run_.lineage.candidates.empty()) {
        status = co_await BeginStart();
      } else if (!IsFinished(run_.lineage.candidates.back())) {
        status = co_await GoOnWithTrial();
      } else {
        status = co_await NextTrial();
      }
      if (status.ok()) run_.trace.Settle(run_.job, run_.lineage);
    }
    // Whatever ended it, what was found counts.
    while (status.ok() && run_.ending && run_.ending->reason != v1::Job::END_REASON_QUOTA &&
           Unconfirmed()) {
      status = co_await Confirm(*Unconfirmed());
    }
    co_return status;
  }

  // Trial of the best candidate, if it was not asked all that winners are.
  std::optional<int> Unconfirmed() const {
    const std::optional<int> best = run_.lineage.Best();
    return best && !IsConfirmed(run_.CandidateOf(*best)) ? best : std::nullopt;
  }

  awaitable<absl::Status> GoOnWithTrial() {
    // The trial was called off for it, and goes on afterwards.
    const std::optional<int> unconfirmed = Unconfirmed();
    if (unconfirmed && !run_.has_time_to_defer()) co_return co_await Confirm(*unconfirmed);
    run_.trace.GoOn(run_.lineage.candidates.back().trial());
    const std::shared_ptr<bool> has_rung = unconfirmed ? ArmConfirmation() : nullptr;
    const absl::Status status = co_await trial_runner_.Advance(run_.lineage.candidates.back());
    const bool is_called_off =
        has_rung && *has_rung && !has_reason_to_end() && !run_.journal.is_paused();
    if (!is_called_off) co_return status;
    run_.interruption.Clear();
    co_return absl::OkStatus();
  }

  // Calls off what runs when the time that is left is just what a confirmation takes, for as long
  // as what it returns lives, which tells whether it has.
  std::shared_ptr<bool> ArmConfirmation() {
    auto has_rung = std::make_shared<bool>(false);
    const absl::Duration left = run_.journal.wall_time_left() -
                                ConfirmationTime(run_.lineage, run_.journal.wall_time_used());
    run_.tools.loop.PostAfter(std::max(left, absl::ZeroDuration()),
                              [this, alarm = std::weak_ptr<bool>(has_rung)] {
                                const std::shared_ptr<bool> there = alarm.lock();
                                if (!there) return;
                                *there = true;
                                run_.interruption.Set();
                              });
    return has_rung;
  }

  awaitable<absl::Status> Confirm(int trial) {
    run_.trace.BeginConfirmation(trial);
    const absl::Status status = co_await trial_runner_.Confirm(trial);
    run_.trace.End();
    co_return status;
  }

  // At once when the job is not paused, or no longer.
  awaitable<void> AwaitResume() {
    if (run_.journal.is_paused()) run_.journal.ReleaseReservations();
    while (run_.journal.is_paused() && !has_reason_to_end()) {
      run_.interruption.Clear();
      co_await WaitFor(run_.tools.loop, run_.interruption, kLongWait);
    }
  }

  // Waits for a worker that matches; with it the search starts.
  awaitable<absl::Status> ChooseDevice() {
    if (run_.job.has_start_time()) {
      ArmWallTime();
      co_return absl::OkStatus();
    }
    std::optional<DeviceChoice> choice = run_.tools.evaluator.FindDevice(run_.job);
    // A worker that is just starting is no news.
    for (int polls = 0; polls < kQuietPolls && !choice && !run_.interruption.is_set(); ++polls) {
      co_await WaitFor(run_.tools.loop, run_.interruption, run_.options.device_poll);
      choice = run_.tools.evaluator.FindDevice(run_.job);
    }
    std::string told;
    while (!choice && !run_.interruption.is_set()) {
      const std::string why = run_.tools.evaluator.WhyNoDevice(run_.job);
      if (!why.empty() && why != told) run_.journal.RecordWaiting(why);
      told = why;
      co_await AwaitFleetChange();
      choice = run_.tools.evaluator.FindDevice(run_.job);
    }
    if (!choice || run_.interruption.is_set()) co_return absl::CancelledError("interrupted");
    *run_.job.mutable_device() = choice->device;
    run_.job.set_dialect(choice->dialect);
    run_.job.set_state(v1::Job::STATE_RUNNING);
    run_.journal.NoteStart();
    ArmWallTime();
    co_return co_await run_.journal.RecordJob();
  }

  awaitable<void> AwaitFleetChange() {
    const auto changed =
        co_await Await<bool>(run_.tools.loop, run_.interruption, [this](Done<bool> done) {
          run_.tools.evaluator.AwaitFleetChange([done = std::move(done)] { done(true); });
        });
    // An interruption, which the caller looks for.
    changed.status().IgnoreError();
  }

  awaitable<absl::Status> Inspect() {
    if (run_.job.has_inspection()) co_return absl::OkStatus();
    Work work = run_.NewWork("");
    auto* request = work.lease.mutable_inspection();
    *request->mutable_problem() = run_.job.problem();
    *request->mutable_baselines() = run_.job.evaluation().baselines();
    request->set_min_isolation(run_.job.evaluation().min_isolation());
    work.key = run_.KeyOf(InspectionKey(*request, run_.job.device()));
    absl::StatusOr<std::optional<v1::Inspection>> known = run_.tools.store.FindInspection(work.key);
    if (!known.ok()) co_return known.status();
    const std::string key = work.key;
    if (*known) {
      *run_.job.mutable_inspection() = **std::move(known);
    } else {
      absl::StatusOr<v1::LeaseResult> result = co_await run_.Submit(std::move(work));
      if (!result.ok()) co_return result.status();
      if (result->has_problem_failure()) {
        run_.ending =
            Ending{.reason = v1::Job::END_REASON_FAILED, .failure = result->problem_failure()};
        co_return absl::OkStatus();
      }
      *run_.job.mutable_inspection() = std::move(*result->mutable_inspection());
    }
    co_return co_await run_.journal.RecordInspection(key);
  }

  awaitable<absl::Status> BeginStart() {
    run_.trace.Begin(0);
    co_return co_await run_.journal.RecordCandidate(NewCandidate(0), {});
  }

  // Selects, chooses, and records the choice: a new trial, a known step, or a stop.
  awaitable<absl::Status> NextTrial() {
    const bool has_tokens = run_.job.budget().max_tokens() == 0 ||
                            run_.job.budget_use().tokens() < run_.job.budget().max_tokens();
    const auto next = has_tokens ? run_.strategy->Next(run_.lineage)
                                 : std::variant<Selection, End>(End{v1::Job::END_REASON_TOKENS});
    const End* end = std::get_if<End>(&next);
    const std::optional<int> unconfirmed = Unconfirmed();
    // After it there may be more to do.
    if (unconfirmed && (end || !run_.has_time_to_defer())) co_return co_await Confirm(*unconfirmed);
    if (end) {
      run_.ending = Ending{.reason = end->reason};
      co_return absl::OkStatus();
    }
    const Selection selection = std::get<Selection>(next);
    run_.trace.Begin(run_.lineage.trials() + 1);
    std::vector<std::string> notices;
    absl::StatusOr<MacroStep> proposed = co_await Propose(selection, notices);
    if (!proposed.ok() || run_.ending) co_return proposed.status();
    MacroStep& step = *proposed;
    const std::string policy = step.decision.policy();
    const v1::Action::Type type = step.action.type();
    absl::Status status;
    if (type == v1::Action::TYPE_STOP) {
      status = co_await run_.journal.RecordStop(step.decision, notices);
    } else {
      v1::Candidate candidate = NewCandidate(run_.lineage.trials() + 1);
      candidate.add_parents(run_.CandidateOf(selection.parent).name());
      // Nothing of it stays here, where thousands of jobs may wait for their coder.
      *candidate.mutable_action() = std::move(step.action);
      *candidate.mutable_decision() = std::move(step.decision);
      candidate.mutable_decision()->set_rollout(selection.rollout);
      candidate.mutable_decision()->set_step(selection.step);
      status = co_await trial_runner_.Begin(std::move(candidate), notices);
    }
    if (status.ok()) run_.tools.observer.OnDecision(policy, type);
    co_return status;
  }

  // Nothing to go by where it sets the run's ending.
  awaitable<absl::StatusOr<MacroStep>> Propose(Selection selection,
                                               std::vector<std::string>& notices) {
    const TrialTrace::Step propose(run_.trace, "propose", trace::SpanKind::kInternal);
    auto question = co_await chooser_.Question(selection);
    if (!question.ok()) co_return question.status();
    if (run_.ending) co_return MacroStep();
    MacroStep step = co_await chooser_.Decide(selection.parent, *question, notices);
    step.decision.set_strategy(run_.strategy->name());
    step.decision.set_version(std::string(config::Version()));
    if (run_.interruption.is_set()) co_return absl::CancelledError("interrupted");
    co_return step;
  }

  awaitable<absl::Status> Finish() {
    run_.trace.End();
    // Of an evaluation that the end called off.
    *run_.job.mutable_budget_use()->mutable_device_time() +=
        TimeUtil::MicrosecondsToDuration(absl::ToInt64Microseconds(run_.allowance.called_off()));
    Conclude(*std::move(run_.ending), run_.lineage, run_.job);
    const absl::Status status = co_await run_.journal.RecordEnd();
    if (status.ok()) run_.tools.observer.OnEnd(run_.job, BestCandidate());
    co_return status;
  }

  const v1::Candidate* BestCandidate() const {
    const auto found = std::find_if(
        run_.lineage.candidates.begin(), run_.lineage.candidates.end(),
        [this](const v1::Candidate& each) { return each.name() == run_.job.best_candidate(); });
    return found == run_.lineage.candidates.end() ? nullptr : &*found;
  }

  v1::Candidate NewCandidate(int trial) const {
    v1::Candidate candidate;
    candidate.set_name(absl::StrCat(run_.name, "/candidates/c", trial));
    candidate.set_state(v1::Candidate::STATE_PENDING);
    candidate.set_trial(trial);
    candidate.set_coder(run_.job.search().coder());
    *candidate.mutable_create_time() = run_.journal.Now();
    return candidate;
  }

  void ArmWallTime() {
    alarm_ = std::make_shared<int>(0);
    run_.tools.loop.PostAfter(run_.journal.wall_time_left(),
                              [this, alarm = std::weak_ptr<int>(alarm_)] {
                                if (!alarm.expired() && !HasEnded(run_.job))
                                  Interrupt(v1::Job::END_REASON_WALL_TIME);
                              });
  }

  void DisarmWallTime() { alarm_.reset(); }

  bool has_reason_to_end() const { return interruption_reason_ != v1::Job::END_REASON_UNSPECIFIED; }

  void Interrupt(v1::Job::EndReason reason) {
    if (has_reason_to_end()) return;
    interruption_reason_ = reason;
    run_.interruption.Set();
  }

  // Lives as long as the timer of the wall time counts.
  std::shared_ptr<int> alarm_;
  // Why the job is to end. Without it, an interruption is a pause, or lets a trial be called off
  // for a confirmation.
  v1::Job::EndReason interruption_reason_ = v1::Job::END_REASON_UNSPECIFIED;
  SearchRun run_;
  Chooser chooser_{run_};
  TrialRunner trial_runner_{run_};
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
