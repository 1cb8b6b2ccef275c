// SPDX-License-Identifier: Apache-2.0
#include "server/search/trial_runner.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"
#include "server/search/at_once.h"
#include "server/search/await.h"
#include "server/search/deferral.h"
#include "server/search/fingerprint.h"
#include "server/search/known_step.h"
#include "server/search/library_calls.h"
#include "server/search/reward.h"
#include "server/store/artifact_store.h"
#include "server/store/blob_queue.h"
#include "server/store/job_store.h"

namespace mtmc::search {

using boost::asio::awaitable;

namespace {

// Device time of an evaluation: from the start of its first stage to the end of
// its last one.
google::protobuf::Duration BusyTime(const v1::Evaluation& evaluation) {
  if (evaluation.spans().empty()) return {};
  return evaluation.spans().rbegin()->end_time() - evaluation.spans(0).start_time();
}

}  // namespace

awaitable<absl::Status> TrialRunner::Begin(v1::Candidate candidate, Notices notices) {
  std::optional<v1::Program> made;
  if (candidate.coder() == kBuiltinCoder) {
    // Stays where it is: nothing but the end of this trial changes the lineage.
    const v1::Candidate& parent = run_.CandidateOf(ParentTrial(candidate));
    const auto program = co_await run_.ReadProgram(parent);
    if (!program.ok()) co_return program.status();
    auto response = co_await run_.coder.ApplyAction(parent, *program, candidate.action());
    if (!response.ok() && run_.interruption.is_set()) co_return response.status();
    if (response.ok() && response->has_program()) {
      made = std::move(*response->mutable_program());
    } else {
      answer_ = std::move(response);
    }
  }
  if (made) {
    const auto known = FindJudged(run_.lineage, base::Sha256(made->text()).sha256_hex);
    if (known) {
      candidate.set_schedule(made->schedule());
      co_return co_await RecordKnown(std::move(candidate), *known, std::move(notices));
    }
  }
  if (made) {
    const absl::Status stored = co_await StoreProgram(*made, candidate);
    if (!stored.ok()) co_return stored;
  }
  // Nothing is waited for from here to the record, so that nobody else records the count.
  run_.job.mutable_budget_use()->set_trials(TrialsAfter(run_.lineage, 0) + 1);
  co_return co_await run_.journal.RecordCandidate(std::move(candidate), notices);
}

awaitable<absl::Status> TrialRunner::RecordKnown(v1::Candidate candidate, int known,
                                                 Notices notices) {
  // The lineage has not all of its evaluation.
  auto judged = run_.tools.store.LookupCandidate(run_.CandidateOf(known).name());
  if (!judged.ok()) co_return judged.status();
  *candidate.mutable_program() = judged->program();
  *candidate.mutable_evaluation() = std::move(*judged->mutable_evaluation());
  candidate.mutable_evaluation()->set_is_cached(true);
  co_return co_await RecordEvaluation(std::move(candidate), std::move(notices));
}

awaitable<absl::Status> TrialRunner::Advance(v1::Candidate candidate) {
  if (candidate.has_program()) co_return co_await Evaluate(std::move(candidate));
  if (candidate.trial() == 0) co_return co_await CodeStart(std::move(candidate));
  co_return co_await CodeStep(std::move(candidate));
}

awaitable<absl::Status> TrialRunner::CodeStart(v1::Candidate candidate) {
  if (run_.job.has_start_program()) co_return co_await AdoptStart(std::move(candidate));
  const auto response = co_await run_.coder.CreateProgram();
  if (!response.ok()) {
    if (run_.interruption.is_set()) co_return response.status();
    if (rpc::ErrorReason(response.status()) == "QUOTA_EXCEEDED") {
      co_return EndByQuota(response.status());
    }
    run_.ending = FailedBecause(response.status(), "START_PROGRAM_FAILED");
    co_return absl::OkStatus();
  }
  Settle(response->token_use());
  const absl::Status kept =
      co_await KeepUse(response->token_use(), response->exchange(), candidate);
  if (!kept.ok()) co_return kept;
  if (!response->has_program()) {
    const auto& failure = response->coder_failure();
    run_.ending = FailedBecause(
        failure.reason().empty() ? "START_PROGRAM_FAILED" : failure.reason(), failure.message());
    candidate.set_state(v1::Candidate::STATE_REJECTED);
    candidate.set_coder_failure(failure.message());
    *candidate.mutable_end_time() = run_.journal.Now();
    co_return co_await run_.journal.RecordCandidate(candidate, {});
  }
  co_return co_await RecordProgram(std::move(candidate), response->program());
}

// The user has written the start program.
awaitable<absl::Status> TrialRunner::AdoptStart(v1::Candidate candidate) {
  *candidate.mutable_program() = run_.job.start_program();
  candidate.set_coder("user");
  co_return co_await run_.journal.RecordCandidate(candidate, {});
}

awaitable<absl::Status> TrialRunner::CodeStep(v1::Candidate candidate) {
  const v1::Candidate& parent = run_.CandidateOf(ParentTrial(candidate));
  const auto program = co_await run_.ReadProgram(parent);
  if (!program.ok()) co_return program.status();
  auto answer = std::exchange(answer_, std::nullopt);
  if (!answer) answer = co_await run_.coder.ApplyAction(parent, *program, candidate.action());
  const absl::StatusOr<v1::ApplyActionResponse>& response = *answer;
  if (!response.ok() && run_.interruption.is_set()) co_return response.status();
  const std::string refusal = rpc::ErrorReason(response.status());
  if (refusal == "QUOTA_EXCEEDED") co_return EndByQuota(response.status());
  if (refusal == "TOKEN_BUDGET_EXHAUSTED") {
    // What is left of the smaller of the two leaves no room for a prompt.
    const bool is_quota = run_.allowance.tokens().value_or(TokensLeft()) < TokensLeft();
    run_.ending =
        Ending{.reason = is_quota ? v1::Job::END_REASON_QUOTA : v1::Job::END_REASON_TOKENS};
    co_return absl::OkStatus();
  }
  if (IsForGood(response.status())) {
    run_.ending = FailedBecause(response.status(), "CODER_REFUSED");
    co_return absl::OkStatus();
  }
  if (response.ok()) {
    Settle(response->token_use());
    const absl::Status kept =
        co_await KeepUse(response->token_use(), response->exchange(), candidate);
    if (!kept.ok()) co_return kept;
  }
  if (response.ok() && response->has_program()) {
    co_return co_await RecordProgram(std::move(candidate), response->program());
  }
  const std::string failure = response.ok() ? absl::StrCat(response->coder_failure().reason(), ": ",
                                                           response->coder_failure().message())
                                            : std::string(response.status().message());
  candidate.set_state(v1::Candidate::STATE_REJECTED);
  candidate.set_coder_failure(failure);
  candidate.set_reward(Reward(parent, candidate, candidate.decision().step()));
  *candidate.mutable_end_time() = run_.journal.Now();
  co_return co_await run_.journal.RecordCandidate(candidate, {});
}

awaitable<absl::Status> TrialRunner::RecordProgram(v1::Candidate candidate, v1::Program program) {
  const absl::Status status = co_await StoreProgram(program, candidate);
  if (!status.ok()) co_return status;
  co_return co_await run_.journal.RecordCandidate(candidate, {});
}

// Writes the program and gives it to the candidate.
awaitable<absl::Status> TrialRunner::StoreProgram(const v1::Program& program,
                                                  v1::Candidate& candidate) {
  const absl::StatusOr<v1::Digest> digest = co_await Store(program.text());
  if (!digest.ok()) co_return digest.status();
  run_.KeepText(*digest, program.text());
  *candidate.mutable_program() = *digest;
  candidate.set_schedule(program.schedule());
  co_return absl::OkStatus();
}

awaitable<absl::Status> TrialRunner::KeepUse(v1::TokenUse use, const v1::Exchange& exchange,
                                             v1::Candidate& candidate) {
  if (use.model().empty()) co_return absl::OkStatus();
  // A gateway of another version has digests and sends no texts.
  use.clear_prompt();
  use.clear_reply();
  if (!exchange.prompt().empty()) {
    auto digest = co_await Store(exchange.prompt());
    if (!digest.ok()) co_return digest.status();
    *use.mutable_prompt() = *std::move(digest);
  }
  if (!exchange.reply().empty()) {
    auto digest = co_await Store(exchange.reply());
    if (!digest.ok()) co_return digest.status();
    *use.mutable_reply() = *std::move(digest);
  }
  *candidate.mutable_token_use() = std::move(use);
  co_return absl::OkStatus();
}

// Waits for a store that is away.
awaitable<absl::StatusOr<v1::Digest>> TrialRunner::Store(const std::string& text) {
  absl::StatusOr<v1::Digest> digest = co_await Put(text);
  while (!digest.ok() && IsPassing(digest.status()) && !run_.interruption.is_set()) {
    co_await WaitFor(run_.tools.loop, run_.interruption, run_.options.max_backoff);
    digest = co_await Put(text);
  }
  co_return digest;
}

// Off the loop: a blob waits for the disk twice.
awaitable<absl::StatusOr<v1::Digest>> TrialRunner::Put(std::string text) {
  // A program that may have cost tokens is kept, whatever comes.
  Interruption none;
  co_return co_await Await<v1::Digest>(run_.tools.loop, none, [this, &text](Done<v1::Digest> done) {
    run_.tools.blobs.Put(std::move(text), std::move(done));
  });
}

awaitable<absl::Status> TrialRunner::Evaluate(v1::Candidate candidate) {
  // A language model that repeats itself has cost its tokens.
  if (const auto known = FindJudged(run_.lineage, candidate.program().sha256())) {
    co_return co_await RecordKnown(std::move(candidate), *known);
  }
  // The lineage has it, too, for as long as thousands of jobs may wait here.
  candidate.clear_decision();
  auto evaluation = co_await Judge(candidate, Scope::kUsual);
  if (!evaluation.ok()) co_return evaluation.status();
  if (!*evaluation) co_return absl::OkStatus();
  const v1::Candidate& recorded = run_.CandidateOf(candidate.trial());
  if (recorded.has_decision()) *candidate.mutable_decision() = recorded.decision();
  *candidate.mutable_evaluation() = **std::move(evaluation);
  co_return co_await RecordEvaluation(std::move(candidate));
}

awaitable<absl::Status> TrialRunner::Confirm(int trial) {
  const v1::Candidate asked = run_.CandidateOf(trial);
  auto evaluation = co_await Judge(asked, Scope::kEverything);
  if (!evaluation.ok()) co_return evaluation.status();
  if (!*evaluation) co_return absl::OkStatus();
  if ((*evaluation)->skipped_confirmation()) {
    run_.ending = FailedBecause("CONFIRMATION_SKIPPED",
                                absl::StrCat("worker ", (*evaluation)->worker(),
                                             " did not confirm ", asked.name(), "; upgrade it"));
    co_return absl::OkStatus();
  }
  // The lineage has not all of it.
  auto candidate = run_.tools.store.LookupCandidate(asked.name());
  if (!candidate.ok()) co_return candidate.status();
  *candidate->mutable_evaluation() = **std::move(evaluation);
  co_return co_await RecordEvaluation(*std::move(candidate));
}

awaitable<absl::StatusOr<v1::EvaluationRequest>> TrialRunner::MakeRequest(
    const v1::Candidate& candidate, Scope scope) {
  v1::EvaluationRequest request;
  *request.mutable_problem() = run_.job.problem();
  *request.mutable_program() = candidate.program();
  *request.mutable_options() = run_.job.evaluation();
  std::vector<std::string> allowed_calls;
  if (run_.job.search().allow_library()) {
    const auto program = co_await run_.ReadProgram(candidate);
    if (!program.ok()) co_return program.status();
    for (std::string& call : LibraryCallsIn(program->text())) {
      request.add_allowed_calls(std::move(call));
    }
    allowed_calls = LibraryCalls();
  }
  request.set_fingerprint(
      run_.KeyOf(EvaluationFingerprint(request, allowed_calls, run_.job.device())));
  if (scope == Scope::kEverything) {
    request.set_needs_profile(true);
    co_return request;
  }
  request.set_speedup_to_beat(kLeastGain * run_.job.best_speedup());
  // Steps at once are taken for the times of their kernels.
  request.set_needs_profile(StepsOf(candidate.action()).size() > 1);
  request.set_defers_confirmation(IsDeferrable(run_.job, candidate) && run_.has_time_to_defer());
  co_return request;
}

// From the cache, or by a worker. Nothing where it sets the run's ending.
awaitable<absl::StatusOr<std::optional<v1::Evaluation>>> TrialRunner::Judge(
    const v1::Candidate& candidate, Scope scope) {
  auto made = co_await MakeRequest(candidate, scope);
  if (!made.ok()) co_return made.status();
  Work work = run_.NewWork(candidate.name());
  v1::EvaluationRequest& request = *work.lease.mutable_evaluation();
  request = *std::move(made);
  work.key = request.fingerprint();
  const auto is_own = [&](const std::optional<store::EvaluationRecord>& known) {
    return known && known->candidate == candidate.name();
  };
  const auto is_hit = [&](const std::optional<store::EvaluationRecord>& known) {
    return known &&
           ((scope == Scope::kUsual && is_own(known)) || IsReusable(request, known->evaluation));
  };
  auto known = run_.tools.store.FindEvaluation(work.key);
  if (!known.ok()) co_return known.status();
  if (!is_hit(*known)) {
    const absl::Status reserved = co_await run_.allowance.ReserveDeviceTime();
    if (!reserved.ok() && run_.interruption.is_set()) co_return reserved;
    if (rpc::ErrorReason(reserved) == "QUOTA_EXCEEDED") {
      (void)EndByQuota(reserved);
      co_return std::nullopt;
    }
    if (!reserved.ok()) co_return reserved;
    // A worker of the last coordinator may have reported meanwhile.
    if (run_.allowance.has_waited()) known = run_.tools.store.FindEvaluation(work.key);
    if (!known.ok()) co_return known.status();
  }
  if (!is_own(*known)) run_.tools.observer.OnCacheLookup(is_hit(*known));
  if (is_hit(*known)) {
    v1::Evaluation evaluation = (*known)->evaluation;
    evaluation.set_is_cached(!is_own(*known));
    co_return evaluation;
  }
  work.granted = [this, scope, trial = candidate.trial(), key = work.key] {
    if (scope == Scope::kUsual) run_.journal.RecordRunning(trial);
    run_.allowance.BeginDeviceTime(key);
  };
  const TrialTrace::Step step(run_.trace, "evaluate", trace::SpanKind::kClient);
  work.lease.set_trace_parent(base::FormatTraceParent(run_.trace.context()));
  absl::StatusOr<v1::LeaseResult> result = co_await run_.Submit(work);
  // Another job that asks for less may have asked for the same just before.
  if (result.ok() && !IsAnswer(request, result->evaluation())) {
    result = co_await run_.Submit(work);
  }
  if (!result.ok()) co_return result.status();
  co_return std::move(*result->mutable_evaluation());
}

absl::Status TrialRunner::EndByQuota(const absl::Status& status) {
  run_.journal.RecordNoticeNow(std::string(status.message()));
  run_.ending = Ending{.reason = v1::Job::END_REASON_QUOTA};
  return absl::OkStatus();
}

awaitable<absl::Status> TrialRunner::RecordEvaluation(v1::Candidate candidate, Notices notices) {
  run_.allowance.EndDeviceTime();
  candidate.set_state(v1::Candidate::STATE_EVALUATED);
  // A confirmation comes after its end.
  if (!candidate.has_end_time()) *candidate.mutable_end_time() = run_.journal.Now();
  if (!candidate.parents().empty()) {
    const v1::Candidate& parent = run_.CandidateOf(ParentTrial(candidate));
    candidate.set_reward(Reward(parent, candidate, candidate.decision().step()));
  }
  if (!candidate.evaluation().is_cached()) {
    auto* device_time = run_.job.mutable_budget_use()->mutable_device_time();
    *device_time += BusyTime(candidate.evaluation());
  }
  const auto best = run_.lineage.BestWith(candidate);
  SetBest(!best                        ? nullptr
          : *best == candidate.trial() ? &candidate
                                       : &run_.CandidateOf(*best),
          run_.job);
  co_return co_await run_.journal.RecordCandidate(candidate, notices);
}

// Of the job's own budget.
int64_t TrialRunner::TokensLeft() const {
  const int64_t budget = run_.job.budget().max_tokens();
  if (budget == 0) return std::numeric_limits<int64_t>::max();
  return budget - run_.job.budget_use().tokens();
}

void TrialRunner::Settle(const v1::TokenUse& use) {
  auto* budget = run_.job.mutable_budget_use();
  budget->set_tokens(budget->tokens() + use.input_tokens() + use.output_tokens());
  budget->set_cost_micros(budget->cost_micros() + use.cost_micros());
}

}  // namespace mtmc::search
