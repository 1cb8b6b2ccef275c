// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verifier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/verify/failure.h"
#include "worker/verify/reference_calls.h"
#include "worker/verify/verifier_round.h"
#include "worker/verify/workloads.h"

namespace mtmc::worker {
namespace {

using ReferenceReply = Reply<pipe::v1::ReferenceResponse>;

// Number under which the runner keeps inputs that the program has not seen.
constexpr int64_t kFreshId = 1000;

// To forget a workload, which only frees memory.
constexpr absl::Duration kReleaseTimeout = absl::Seconds(10);

}  // namespace

std::optional<v1::Failure> FailureOf(const Reply<pipe::v1::RunnerResponse>& reply,
                                     v1::Stage stage) {
  using Ending = Reply<pipe::v1::RunnerResponse>::Ending;
  switch (reply.ending) {
    case Ending::kAnswered:
      if (!reply.response.has_failure()) return std::nullopt;
      return reply.response.failure();
    case Ending::kDied:
      return MakeFailure(v1::Failure::KIND_CRASH, stage,
                         "the runner process died while it ran the program", reply.detail);
    case Ending::kOutOfMemory:
      return MakeFailure(v1::Failure::KIND_OUT_OF_MEMORY, stage,
                         "the runner process took more of the host's memory than it may",
                         reply.detail);
    case Ending::kKilled:
      return MakeFailure(v1::Failure::KIND_UNSPECIFIED, stage,
                         "the runner process was killed from outside", reply.detail);
    case Ending::kUnavailable:
      return MakeFailure(v1::Failure::KIND_UNSPECIFIED, stage, "no runner process works",
                         reply.detail);
    case Ending::kTimedOut:
      return MakeFailure(v1::Failure::KIND_TIMEOUT, stage, "the program did not finish in time",
                         reply.detail);
    case Ending::kCancelled:
      return MakeFailure(v1::Failure::KIND_TIMEOUT, stage, "the evaluation was called off");
  }
  return std::nullopt;
}

Verifier::Verifier(RunnerParty& runner, ReferenceParty& reference)
    : runner_(runner), reference_(reference) {}

Verifier::~Verifier() = default;

void Verifier::PrepareAhead(const Options& options, bool is_winner,
                            const std::function<bool()>& is_done) {
  const absl::Time deadline = absl::Now() + options.timeout;
  auto workloads = MakeWorkloads(options.hidden_seeds, options.has_distributions);
  if (is_winner) {
    // Of a program's own, nobody else has the inputs.
    const auto others = MakeWinnerWorkloads(/*has_numbers=*/false);
    workloads.insert(workloads.end(), others.begin(), others.end());
  }
  for (const v1::Workload& each : workloads) {
    if (is_done() || absl::Now() > deadline) return;
    reference_.Call(MakePrepare(each, /*salt=*/0, /*keeps_last=*/false), deadline - absl::Now());
  }
}

Verification Verifier::Verify(const Options& options) {
  trouble_.reset();
  ForgetKept();
  DropFresh();
  return Round(*this, options).Run(MakeWorkloads(options.hidden_seeds, options.has_distributions));
}

Verification Verifier::VerifyWinner(const Options& options) {
  trouble_.reset();
  ForgetKept();
  return Round(*this, options).Run(MakeWinnerWorkloads(!options.numbers.empty()));
}

Verification Verifier::VerifyKept(absl::Duration timeout) {
  trouble_.reset();
  const absl::Time deadline = absl::Now() + timeout;
  Verification all;
  for (size_t i = 0; i < kept_.size(); ++i) {
    pipe::v1::RunnerRequest request;
    request.mutable_execute()->set_kept(kept_[i].id);
    const auto reply = runner_.Call(request, deadline - absl::Now());
    if (auto failure = FailureOf(reply, v1::STAGE_MEASURE)) return Failed(*std::move(failure));
    const Subject& subject = kept_subjects_[i];
    all = Judge(subject,
                reference_.Call(MakeCompare(subject.prepared, reply.response, /*is_repeat=*/false),
                                deadline - absl::Now()));
    if (trouble_ || all.failure) return all;
  }
  return all;
}

void Verifier::ForgetKept() {
  kept_.clear();
  kept_subjects_.clear();
}

std::unique_ptr<Verifier::Subject> Verifier::MakeSubject(const v1::Workload& workload,
                                                         ReferenceReply reply) {
  if (!reply.is_answered() || reply.response.has_failure()) {
    trouble_ = TroubleOf(reply);
    return nullptr;
  }
  auto& prepared = *reply.response.mutable_prepared();
  if (!prepared.dropped().empty()) return nullptr;
  auto subject = std::make_unique<Subject>();
  subject->workload = workload;
  subject->prepared = prepared.prepared();
  subject->oracle = prepared.oracle();
  subject->inputs.Swap(prepared.mutable_inputs());
  return subject;
}

Verification Verifier::VerifyAgain(absl::Duration timeout) {
  trouble_.reset();
  ForgetKept();
  const absl::Time deadline = absl::Now() + timeout;
  const auto reply = runner_.Call(MakeExecute(*current_), timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_VERIFY)) return Failed(*std::move(failure));
  return Judge(*current_,
               reference_.Call(MakeCompare(current_->prepared, reply.response, /*is_repeat=*/false),
                               deadline - absl::Now()));
}

std::variant<double, v1::Failure> Verifier::ExecuteAgain(absl::Duration timeout) {
  ForgetKept();
  const auto reply = runner_.Call(MakeExecute(*current_), timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_VERIFY)) return *std::move(failure);
  return reply.response.outputs().seconds();
}

pipe::v1::RunnerRequest Verifier::MakeExecute(const Subject& subject) {
  pipe::v1::RunnerRequest request;
  *request.mutable_execute()->mutable_inputs() = subject.inputs;
  return request;
}

Verification Verifier::Recheck(absl::Duration timeout) {
  Verification result = PublishAndCompare(*current_, timeout);
  if (result.failure && result.failure->kind() == v1::Failure::KIND_WRONG_RESULT) {
    result.failure->set_message(
        absl::StrCat("correct at first, wrong after timing: ", result.failure->message()));
  }
  return result;
}

std::optional<FreshInputs> Verifier::PrepareFresh(absl::Duration timeout) {
  trouble_.reset();
  if (auto fresh = std::exchange(fresh_, std::nullopt)) return fresh;
  const absl::Time deadline = absl::Now() + timeout;
  const ReferenceReply prepared = reference_.Call(MakePrepareFresh(), timeout);
  auto fresh = KeepFresh(prepared, deadline);
  if (!fresh && prepared.response.has_prepared()) {
    reference_.Call(MakeRelease(prepared.response.prepared().prepared()), kReleaseTimeout);
  }
  return fresh;
}

std::optional<FreshInputs> Verifier::KeepFresh(const ReferenceReply& prepared,
                                               absl::Time deadline) {
  const auto subject = MakeSubject(FreshWorkload(), prepared);
  if (!subject) return std::nullopt;
  pipe::v1::RunnerRequest execute = MakeExecute(*subject);
  execute.mutable_execute()->set_keep_as(kFreshId);
  execute.mutable_execute()->set_keep_only(true);
  const auto reply = runner_.Call(execute, deadline - absl::Now());
  if (FailureOf(reply, v1::STAGE_MEASURE) || reply.response.outputs().kept() != kFreshId) {
    return std::nullopt;
  }
  return FreshInputs{.id = kFreshId, .prepared = subject->prepared};
}

// Frees memory only; a process that cannot answer is found out by the next call.
void Verifier::DropFresh() {
  if (!fresh_) return;
  reference_.Call(MakeRelease(fresh_->prepared), kReleaseTimeout);
  fresh_.reset();
}

Verification Verifier::CheckFresh(const FreshInputs& fresh, absl::Duration timeout) {
  const Subject subject{
      .workload = FreshWorkload(), .prepared = fresh.prepared, .oracle = {}, .inputs = {}};
  return PublishAndCompare(subject, timeout, /*forgets=*/true);
}

Verification Verifier::CheckKept(int64_t id, absl::Duration timeout) {
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (kept_[i].id == id) return PublishAndCompare(kept_subjects_[i], timeout);
  }
  trouble_ = ReferenceTrouble{"NOT_PREPARED", "no verified inputs are kept under that number"};
  return {};
}

Verification Verifier::PublishAndCompare(const Subject& subject, absl::Duration timeout,
                                         bool forgets) {
  const absl::Time deadline = absl::Now() + timeout;
  trouble_.reset();
  pipe::v1::RunnerRequest publish;
  publish.mutable_publish();
  const auto reply = runner_.Call(publish, timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_MEASURE)) return Failed(*std::move(failure));
  pipe::v1::ReferenceRequest compare =
      MakeCompare(subject.prepared, reply.response, /*is_repeat=*/false);
  compare.mutable_compare()->set_forgets(forgets);
  Verification result = Judge(subject, reference_.Call(compare, deadline - absl::Now()));
  if (result.failure) result.failure->set_stage(v1::STAGE_MEASURE);
  return result;
}

Verification Verifier::Judge(const Subject& subject, const ReferenceReply& reply) {
  if (!reply.is_answered() || reply.response.has_failure()) {
    trouble_ = TroubleOf(reply);
    return {};
  }
  const auto& compared = reply.response.compared();
  Verification result;
  result.verdict = v1::Evaluation::VERDICT_CORRECT;
  result.errors.assign(compared.errors().begin(), compared.errors().end());
  for (v1::OutputError& error : result.errors) error.set_workload(ToText(subject.workload));
  for (const int precision : compared.satisfied()) {
    result.satisfied.push_back(static_cast<v1::Precision>(precision));
  }
  result.checks.set_nonfinite(compared.remark());
  result.kernelbench_allclose = compared.kernelbench_allclose() || !IsUnchanged(subject.workload);
  if (!compared.is_correct() || compared.is_unrepeatable()) {
    result.verdict = v1::Evaluation::VERDICT_WRONG;
    result.failure =
        MakeFailure(v1::Failure::KIND_WRONG_RESULT, v1::STAGE_VERIFY,
                    absl::StrCat(compared.message(), " (workload ", ToText(subject.workload), ")"));
  }
  return result;
}

}  // namespace mtmc::worker
