// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verifier.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mtmc/v1/reference.pb.h"
#include "mtmc/v1/runner.pb.h"

namespace mtmc::worker {
namespace {

// Bytes that make a NaN, a huge and a small value of every floating type, and
// different integers: an element that was not written cannot look right twice.
constexpr std::array<int, 3> kPoison = {0xFF, 0x7B, 0x01};

v1::Failure MakeFailure(v1::Failure::Kind kind, v1::Stage stage, std::string message,
                        std::string diagnostics = "") {
  v1::Failure failure;
  failure.set_kind(kind);
  failure.set_stage(stage);
  failure.set_message(std::move(message));
  failure.set_diagnostics(std::move(diagnostics));
  return failure;
}

v1::Evaluation::Verdict VerdictOf(v1::Failure::Kind kind) {
  switch (kind) {
    case v1::Failure::KIND_WRONG_RESULT:
      return v1::Evaluation::VERDICT_WRONG;
    case v1::Failure::KIND_OUT_OF_BOUNDS:
    case v1::Failure::KIND_INPUT_CHANGED:
    case v1::Failure::KIND_CRASH:
      return v1::Evaluation::VERDICT_UNSAFE;
    case v1::Failure::KIND_NONDETERMINISTIC:
      return v1::Evaluation::VERDICT_NONDETERMINISTIC;
    case v1::Failure::KIND_CHEAT:
      return v1::Evaluation::VERDICT_CHEATED;
    default:
      return v1::Evaluation::VERDICT_UNSPECIFIED;
  }
}

Verification Failed(v1::Failure failure) {
  Verification result;
  result.verdict = VerdictOf(failure.kind());
  result.failure = std::move(failure);
  return result;
}

// Keeps the classes that both hold, and the errors of the worse one.
void MergeInto(Verification& all, const Verification& one) {
  std::erase_if(all.satisfied, [&](v1::Precision precision) {
    return std::find(one.satisfied.begin(), one.satisfied.end(), precision) == one.satisfied.end();
  });
  all.kernelbench_allclose = all.kernelbench_allclose && one.kernelbench_allclose;
  for (size_t i = 0; i < std::min(all.errors.size(), one.errors.size()); ++i) {
    if (one.errors[i].tolerance_needed() > all.errors[i].tolerance_needed()) {
      all.errors[i] = one.errors[i];
    }
  }
}

ReferenceTrouble TroubleOf(const Reply<v1::ReferenceResponse>& reply) {
  using Ending = Reply<v1::ReferenceResponse>::Ending;
  if (reply.ending == Ending::kTimedOut) {
    return {"REFERENCE_TIMEOUT", "the reference process did not answer in time"};
  }
  if (reply.is_answered()) {
    return {reply.response.failure().reason(), reply.response.failure().message()};
  }
  return {"REFERENCE_DIED", absl::StrCat("the reference process ended: ", reply.detail)};
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

Verifier::Verifier(RunnerParty& runner, ReferenceParty& reference)
    : runner_(runner), reference_(reference) {}

Verification Verifier::Verify(const Options& options) {
  const absl::Time deadline = absl::Now() + options.timeout;
  Verification all;
  for (int workload = options.hidden_seeds; workload >= 0; --workload) {
    Verification one = VerifyWorkload(workload, deadline - absl::Now());
    if (one.failure || trouble_) return one;
    if (workload == options.hidden_seeds) {
      all = std::move(one);
    } else {
      MergeInto(all, one);
    }
  }
  return all;
}

Verification Verifier::VerifyWorkload(int workload, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  trouble_.reset();
  v1::ReferenceRequest prepare;
  prepare.mutable_prepare()->set_workload(workload);
  auto reply = reference_.Call(prepare, timeout);
  if (!reply.is_answered() || reply.response.has_failure()) {
    trouble_ = TroubleOf(reply);
    return {};
  }
  workload_ = workload;
  execute_ = std::make_unique<v1::RunnerRequest>();
  *execute_->mutable_execute()->mutable_inputs() =
      std::move(*reply.response.mutable_prepared()->mutable_inputs());
  return Execute(deadline - absl::Now());
}

Verification Verifier::VerifyAgain(absl::Duration timeout) {
  trouble_.reset();
  return Execute(timeout);
}

Verification Verifier::Execute(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  execute_->mutable_execute()->set_poison(kPoison[static_cast<size_t>(poison_++) % kPoison.size()]);
  const auto reply = runner_.Call(*execute_, timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_VERIFY)) return Failed(*std::move(failure));
  return Compare(reply.response, deadline - absl::Now());
}

Verification Verifier::Recheck(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  trouble_.reset();
  v1::RunnerRequest publish;
  publish.mutable_publish();
  const auto reply = runner_.Call(publish, timeout);
  if (auto failure = FailureOf(reply, v1::STAGE_MEASURE)) return Failed(*std::move(failure));
  Verification result = Compare(reply.response, deadline - absl::Now());
  if (result.failure && result.failure->kind() == v1::Failure::KIND_WRONG_RESULT) {
    result.failure->set_stage(v1::STAGE_MEASURE);
    result.failure->set_message(
        absl::StrCat("correct at first, wrong after timing: ", result.failure->message()));
  }
  return result;
}

Verification Verifier::Compare(const v1::RunnerResponse& outputs, absl::Duration timeout) {
  v1::ReferenceRequest compare;
  *compare.mutable_compare()->mutable_outputs() = outputs.outputs().outputs();
  const auto reply = reference_.Call(compare, timeout);
  if (!reply.is_answered() || reply.response.has_failure()) {
    trouble_ = TroubleOf(reply);
    return {};
  }
  const auto& compared = reply.response.compared();
  Verification result;
  result.verdict = v1::Evaluation::VERDICT_CORRECT;
  result.errors.assign(compared.errors().begin(), compared.errors().end());
  for (v1::OutputError& error : result.errors) {
    if (error.workload().empty()) error.set_workload(absl::StrCat("seed ", workload_));
  }
  for (const int precision : compared.satisfied()) {
    result.satisfied.push_back(static_cast<v1::Precision>(precision));
  }
  result.kernelbench_allclose = compared.kernelbench_allclose();
  if (!compared.is_correct()) {
    result.verdict = v1::Evaluation::VERDICT_WRONG;
    result.failure =
        MakeFailure(v1::Failure::KIND_WRONG_RESULT, v1::STAGE_VERIFY,
                    absl::StrCat(compared.message(), " (workload seed ", workload_, ")"));
  }
  return result;
}

}  // namespace mtmc::worker
