// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verifier.h"

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mtmc/v1/reference.pb.h"
#include "mtmc/v1/runner.pb.h"
#include "worker/verify/failure.h"
#include "worker/verify/reference_calls.h"
#include "worker/verify/reference_queue.h"
#include "worker/verify/workloads.h"

namespace mtmc::worker {
namespace {

using RunnerReply = Reply<v1::RunnerResponse>;
using ReferenceReply = Reply<v1::ReferenceResponse>;

// Bytes that make a NaN, a huge and a small value of every floating type, and
// different integers: an element that was not written cannot look right twice.
constexpr std::array<int, 3> kPoison = {0xFF, 0x7B, 0x01};

// Sets of inputs that the runner keeps for timing, the public one included.
constexpr int kKeptSets = 3;

// Number under which the runner keeps inputs that the program has not seen, and
// their seed index, which no verified workload has.
constexpr int64_t kFreshId = 1000;
constexpr int kFreshSeed = 1000;

// To forget a workload, which only frees memory.
constexpr absl::Duration kReleaseTimeout = absl::Seconds(10);

uint64_t DrawSalt() {
  std::random_device device;
  const uint64_t salt = (uint64_t{device()} << 32) | device();
  return salt == 0 ? 1 : salt;
}

v1::Workload FreshWorkload() {
  v1::Workload workload;
  workload.set_seed_index(kFreshSeed);
  return workload;
}

v1::ReferenceRequest MakePrepareFresh() {
  return MakePrepare(FreshWorkload(), DrawSalt(), /*keeps_last=*/false);
}

v1::ReferenceRequest MakeRelease(int64_t prepared) {
  v1::ReferenceRequest request;
  request.mutable_release()->set_prepared(prepared);
  return request;
}

}  // namespace

std::optional<v1::Failure> FailureOf(const Reply<v1::RunnerResponse>& reply, v1::Stage stage) {
  using Ending = Reply<v1::RunnerResponse>::Ending;
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

// A prepared workload of the reference process.
struct Verifier::Subject {
  v1::Workload workload;
  // Its handle there.
  int64_t prepared = 0;
  std::string oracle;
  google::protobuf::RepeatedPtrField<v1::SharedTensor> inputs;

  // What a comparison needs.
  Subject WithoutInputs() const { return {workload, prepared, oracle, {}}; }
};

// All workloads on their way through both processes. Where outputs stay while the next
// workload is executed, neither process waits for the other:
//
//   runner     | execute 1 | execute 2             | execute 3 ...
//   reference  | prepare 2 | compare 1 | prepare 3 | compare 2 | prepare 4 ...
//
// The workload for PrepareFresh is prepared beside execution 1.
//
// What a workload shows counts in the order of the workloads either way.
class Verifier::Round {
 public:
  Round(Verifier& verifier, const Options& options)
      : verifier_(verifier),
        deadline_(absl::Now() + options.timeout),
        prepares_fresh_(options.prepares_fresh && options.outputs_stay),
        queue_(verifier.reference_),
        outputs_stay_(options.outputs_stay) {}

  Verification Run(const std::vector<v1::Workload>& workloads) {
    Verification result = RunAll(workloads);
    // After an early end, nobody needs it.
    if (fresh_.valid()) Release(fresh_.get());
    return result;
  }

 private:
  using MaybeEnd = std::optional<Verification>;

  // What the reference process has yet to say about the outputs of an execution.
  struct Comparison {
    int execution = 0;
    Subject subject;
    bool is_repeat = false;
    ReferenceQueue::Answer answer;
  };

  Verification RunAll(const std::vector<v1::Workload>& workloads) {
    ReferenceQueue::Answer prepared =
        queue_.Call(MakePrepare(workloads.front(), /*salt=*/0, /*keeps_last=*/false), deadline_);
    for (size_t i = 0; i < workloads.size(); ++i) {
      auto subject = verifier_.MakeSubject(workloads[i], prepared.get());
      if (verifier_.trouble_) return SettleAfter({});
      const bool has_next = i + 1 < workloads.size();
      if (i == 0 && prepares_fresh_) fresh_ = queue_.Call(MakePrepareFresh(), deadline_);
      if (has_next && outputs_stay_) prepared = Prepare(workloads[i + 1]);
      if (!subject) {
        checks_.add_dropped(workloads[i].distribution());
      } else {
        verifier_.current_ = std::move(subject);
        if (auto end = Execute()) return *std::move(end);
      }
      if (has_next && !prepared.valid()) prepared = Prepare(workloads[i + 1]);
    }
    if (fresh_.valid()) KeepFresh();
    if (auto end = Settle(num_executions_)) return *std::move(end);
    return WithChecks(*std::move(all_));
  }

  void KeepFresh() {
    const ReferenceReply prepared = fresh_.get();
    verifier_.fresh_ = verifier_.KeepFresh(prepared, deadline_);
    // Should it be so again, PrepareFresh tells.
    verifier_.trouble_ = std::nullopt;
    if (!verifier_.fresh_) Release(prepared);
  }

  void Release(const ReferenceReply& prepared) {
    if (!prepared.response.has_prepared()) return;
    queue_.Call(MakeRelease(prepared.response.prepared().prepared()), deadline_);
  }

  ReferenceQueue::Answer Prepare(const v1::Workload& workload) {
    return queue_.Call(MakePrepare(workload, /*salt=*/0, /*keeps_last=*/outputs_stay_), deadline_);
  }

  // Executes on the current workload; some twice, the second time under load. Equal bytes
  // need no second comparison.
  MaybeEnd Execute() {
    const v1::Workload& workload = verifier_.current_->workload;
    // Of three kept sets, the next one cannot be foreseen from the last.
    const bool is_repeated = IsUnchanged(workload) && workload.seed_index() < kKeptSets;
    v1::RunnerRequest request = verifier_.MakeExecute(*verifier_.current_);
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
    const v1::RunnerResponse::Outputs& outputs = first.response.outputs();
    const uint64_t digest = outputs.digest();
    const bool is_reproducible = digest != 0 && second.response.outputs().digest() == digest;
    if (digest != 0 && outputs.kept() != 0) {
      verifier_.kept_.push_back({outputs.kept(), digest, is_reproducible});
      verifier_.kept_subjects_.push_back(verifier_.current_->WithoutInputs());
    }
    return is_reproducible ? std::nullopt : Compare(second, /*is_repeat=*/true);
  }

  MaybeEnd Call(const v1::RunnerRequest& request, RunnerReply& reply) {
    // Outputs stay for one execution.
    if (auto end = Settle(num_executions_ - 1)) return end;
    reply = verifier_.runner_.Call(request, deadline_ - absl::Now());
    ++num_executions_;
    outputs_stay_ = reply.response.outputs().stay();
    auto failure = FailureOf(reply, v1::STAGE_VERIFY);
    return failure ? MaybeEnd(SettleAfter(Failed(*std::move(failure)))) : std::nullopt;
  }

  MaybeEnd Compare(const RunnerReply& reply, bool is_repeat) {
    const Subject& subject = *verifier_.current_;
    comparisons_.push_back(
        {.execution = num_executions_,
         .subject = subject.WithoutInputs(),
         .is_repeat = is_repeat,
         .answer =
             queue_.Call(MakeCompare(subject.prepared, reply.response, is_repeat), deadline_)});
    return outputs_stay_ ? std::nullopt : Settle(num_executions_);
  }

  // Awaits the comparisons of executions up to that one.
  MaybeEnd Settle(int execution) {
    while (!comparisons_.empty() && comparisons_.front().execution <= execution) {
      Comparison comparison = std::move(comparisons_.front());
      comparisons_.pop_front();
      if (auto end = Settle(comparison)) return end;
    }
    return std::nullopt;
  }

  MaybeEnd Settle(Comparison& comparison) {
    Verification one = verifier_.Judge(comparison.subject, comparison.answer.get());
    if (verifier_.trouble_) return Verification();
    if (comparison.is_repeat) {
      if (!one.failure) return std::nullopt;
      return WithChecks(Failed(MakeFailure(
          v1::Failure::KIND_NONDETERMINISTIC, v1::STAGE_VERIFY,
          absl::StrCat("two runs on the same inputs disagree: ", one.failure->message()))));
    }
    *checks_.add_workloads() = comparison.subject.workload;
    checks_.set_oracle(WeakerOracle(checks_.oracle(), comparison.subject.oracle));
    if (one.failure) return WithChecks(std::move(one));
    if (!all_) {
      all_ = std::move(one);
    } else {
      MergeInto(*all_, one);
    }
    return std::nullopt;
  }

  // `last`, unless an execution before shows a failure. A reference process that loses what
  // a runner that ended had shared is no trouble beside it.
  Verification SettleAfter(Verification last) {
    const auto trouble = std::exchange(verifier_.trouble_, std::nullopt);
    MaybeEnd end = Settle(num_executions_);
    verifier_.trouble_ = std::nullopt;
    if (end && end->failure) return *std::move(end);
    if (last.failure) return WithChecks(std::move(last));
    verifier_.trouble_ = trouble;
    return last;
  }

  Verification WithChecks(Verification verification) {
    verification.checks = std::move(checks_);
    return verification;
  }

  Verifier& verifier_;
  const absl::Time deadline_;
  const bool prepares_fresh_;
  ReferenceQueue queue_;
  // Valid while the workload for PrepareFresh is under way.
  ReferenceQueue::Answer fresh_;
  // In the order of their executions, which are numbered from 1.
  std::deque<Comparison> comparisons_;
  int num_executions_ = 0;
  // Of the last execution, or of all.
  bool outputs_stay_;
  // Of the workloads that are settled.
  std::optional<Verification> all_;
  v1::VerificationSummary checks_;
};

Verifier::Verifier(RunnerParty& runner, ReferenceParty& reference)
    : runner_(runner), reference_(reference) {}

Verifier::~Verifier() = default;

Verification Verifier::Verify(const Options& options) {
  trouble_.reset();
  kept_.clear();
  kept_subjects_.clear();
  DropFresh();
  return Round(*this, options).Run(MakeWorkloads(options.hidden_seeds, options.has_distributions));
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
  kept_.clear();
  kept_subjects_.clear();
  const absl::Time deadline = absl::Now() + timeout;
  const auto reply = runner_.Call(MakeExecute(*current_), timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_VERIFY)) return Failed(*std::move(failure));
  return Judge(*current_,
               reference_.Call(MakeCompare(current_->prepared, reply.response, /*is_repeat=*/false),
                               deadline - absl::Now()));
}

std::variant<double, v1::Failure> Verifier::ExecuteAgain(absl::Duration timeout) {
  kept_.clear();
  kept_subjects_.clear();
  const auto reply = runner_.Call(MakeExecute(*current_), timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_VERIFY)) return *std::move(failure);
  return reply.response.outputs().seconds();
}

v1::RunnerRequest Verifier::MakeExecute(const Subject& subject) {
  v1::RunnerRequest request;
  auto& execute = *request.mutable_execute();
  *execute.mutable_inputs() = subject.inputs;
  execute.set_poison(kPoison[static_cast<size_t>(poison_++) % kPoison.size()]);
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
  v1::RunnerRequest execute = MakeExecute(*subject);
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
  v1::RunnerRequest publish;
  publish.mutable_publish();
  const auto reply = runner_.Call(publish, timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_MEASURE)) return Failed(*std::move(failure));
  v1::ReferenceRequest compare = MakeCompare(subject.prepared, reply.response, /*is_repeat=*/false);
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
