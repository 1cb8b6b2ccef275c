// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verifier_round.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "worker/verify/failure.h"
#include "worker/verify/reference_calls.h"
#include "worker/verify/workloads.h"

namespace mtmc::worker {
namespace {

// Sets of inputs that the runner keeps for timing.
constexpr int kKeptSets = 3;

}  // namespace

Verifier::Round::Round(Verifier& verifier, const Options& options)
    : verifier_(verifier),
      deadline_(absl::Now() + options.timeout),
      prepares_fresh_(options.prepares_fresh && options.outputs_stay),
      numbers_(options.numbers),
      own_salt_(DrawSalt()),
      queue_(verifier.reference_),
      outputs_stay_(options.outputs_stay) {}

Verification Verifier::Round::Run(const std::vector<v1::Workload>& workloads) {
  Verification result = RunAll(workloads);
  // After an early end, nobody needs it.
  if (fresh_.valid()) Release(fresh_.get());
  return result;
}

Verification Verifier::Round::RunAll(const std::vector<v1::Workload>& workloads) {
  ReferenceQueue::Answer prepared = Prepare(workloads.front(), /*keeps_last=*/false);
  for (size_t i = 0; i < workloads.size(); ++i) {
    auto subject = verifier_.MakeSubject(workloads[i], prepared.get());
    if (verifier_.trouble_) return SettleAfter({});
    const bool has_next = i + 1 < workloads.size();
    if (i == 0 && prepares_fresh_) fresh_ = queue_.Call(MakePrepareFresh(), deadline_);
    if (has_next && outputs_stay_) prepared = Prepare(workloads[i + 1], /*keeps_last=*/true);
    if (!subject) {
      checks_.add_dropped(workloads[i].distribution());
    } else {
      verifier_.current_ = std::move(subject);
      if (auto end = Execute()) return *std::move(end);
    }
    if (has_next && !prepared.valid()) prepared = Prepare(workloads[i + 1], outputs_stay_);
  }
  if (fresh_.valid()) KeepFresh();
  if (auto end = Settle(num_executions_)) return *std::move(end);
  return WithChecks(*std::move(all_));
}

void Verifier::Round::KeepFresh() {
  const ReferenceReply prepared = fresh_.get();
  verifier_.fresh_ = verifier_.KeepFresh(prepared, deadline_);
  // Should it be so again, PrepareFresh tells.
  verifier_.trouble_ = std::nullopt;
  if (!verifier_.fresh_) Release(prepared);
}

void Verifier::Round::Release(const ReferenceReply& prepared) {
  if (!prepared.response.has_prepared()) return;
  queue_.Call(MakeRelease(prepared.response.prepared().prepared()), deadline_);
}

ReferenceQueue::Answer Verifier::Round::Prepare(const v1::Workload& workload, bool keeps_last) {
  const bool is_own = IsOwn(workload);
  auto request = MakePrepare(workload, is_own ? own_salt_ : 0, keeps_last);
  if (is_own) {
    request.mutable_prepare()->mutable_numbers()->Assign(numbers_.begin(), numbers_.end());
  }
  return queue_.Call(request, deadline_);
}

auto Verifier::Round::Execute() -> MaybeEnd {
  const v1::Workload& workload = verifier_.current_->workload;
  const bool is_repeated = IsHiddenSeed(workload) && workload.seed_index() <= kKeptSets;
  pipe::v1::RunnerRequest request = verifier_.MakeExecute(*verifier_.current_);
  if (is_repeated) {
    const auto next = static_cast<int64_t>(verifier_.kept_.size()) + 1;
    request.mutable_execute()->set_keep_as(next);
  }
  request.mutable_execute()->set_with_digest(is_repeated);
  RunnerReply first;
  if (auto end = Call(request, first)) return end;
  if (auto end = Compare(first, /*is_repeat=*/false)) return end;
  if (!is_repeated) return std::nullopt;

  request = verifier_.MakeExecute(*verifier_.current_);
  request.mutable_execute()->set_under_load(true);
  request.mutable_execute()->set_with_digest(true);
  RunnerReply second;
  if (auto end = Call(request, second)) return end;
  const pipe::v1::RunnerResponse::Outputs& outputs = first.response.outputs();
  const uint64_t digest = outputs.digest();
  const bool is_reproducible = digest != 0 && second.response.outputs().digest() == digest;
  if (digest != 0 && outputs.kept() != 0) {
    verifier_.kept_.push_back({outputs.kept(), digest, is_reproducible});
    verifier_.kept_subjects_.push_back(verifier_.current_->WithoutInputs());
  }
  return is_reproducible ? std::nullopt : Compare(second, /*is_repeat=*/true);
}

auto Verifier::Round::Call(const pipe::v1::RunnerRequest& request, RunnerReply& reply) -> MaybeEnd {
  // Outputs stay for one execution.
  if (auto end = Settle(num_executions_ - 1)) return end;
  reply = verifier_.runner_.Call(request, deadline_ - absl::Now());
  ++num_executions_;
  outputs_stay_ = reply.response.outputs().stay();
  auto failure = FailureOf(reply, v1::STAGE_VERIFY);
  if (!failure) return std::nullopt;
  // What the inputs were tells why a program crashes on them.
  failure->set_message(
      absl::StrCat(failure->message(), " (workload ", ToText(verifier_.current_->workload), ")"));
  return SettleAfter(Failed(*std::move(failure)));
}

auto Verifier::Round::Compare(const RunnerReply& reply, bool is_repeat) -> MaybeEnd {
  const Subject& subject = *verifier_.current_;
  comparisons_.push_back(
      {.execution = num_executions_,
       .subject = subject.WithoutInputs(),
       .is_repeat = is_repeat,
       .answer = queue_.Call(MakeCompare(subject.prepared, reply.response, is_repeat), deadline_)});
  return outputs_stay_ ? std::nullopt : Settle(num_executions_);
}

auto Verifier::Round::Settle(int execution) -> MaybeEnd {
  while (!comparisons_.empty() && comparisons_.front().execution <= execution) {
    Comparison comparison = std::move(comparisons_.front());
    comparisons_.pop_front();
    if (auto end = Settle(comparison)) return end;
  }
  return std::nullopt;
}

auto Verifier::Round::Settle(Comparison& comparison) -> MaybeEnd {
  Verification one = verifier_.Judge(comparison.subject, comparison.answer.get());
  if (verifier_.trouble_) return Verification();
  if (comparison.is_repeat) {
    if (!one.failure) return std::nullopt;
    return WithChecks(Failed(MakeFailure(
        v1::Failure::KIND_NONDETERMINISTIC, v1::STAGE_VERIFY,
        absl::StrCat("two runs on the same inputs disagree: ", one.failure->message()))));
  }
  *checks_.add_workloads() = comparison.subject.workload;
  if (!one.checks.nonfinite().empty()) checks_.set_nonfinite(one.checks.nonfinite());
  // What is not finite says nothing about precision.
  const bool is_finite = comparison.subject.workload.distribution() != v1::DISTRIBUTION_NONFINITE;
  if (is_finite) checks_.set_oracle(WeakerOracle(checks_.oracle(), comparison.subject.oracle));
  if (one.failure) return WithChecks(std::move(one));
  if (!is_finite) return std::nullopt;
  if (!all_) {
    all_ = std::move(one);
  } else {
    MergeInto(*all_, one);
  }
  return std::nullopt;
}

Verification Verifier::Round::SettleAfter(Verification last) {
  const auto trouble = std::exchange(verifier_.trouble_, std::nullopt);
  MaybeEnd end = Settle(num_executions_);
  verifier_.trouble_ = std::nullopt;
  if (end && end->failure) return *std::move(end);
  if (last.failure) return WithChecks(std::move(last));
  verifier_.trouble_ = trouble;
  return last;
}

Verification Verifier::Round::WithChecks(Verification verification) {
  verification.checks = std::move(checks_);
  return verification;
}

}  // namespace mtmc::worker
