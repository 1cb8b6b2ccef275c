// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/evaluation_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/enum_word.h"
#include "common/trace/span.h"
#include "kernel/program/numbers.h"
#include "kernel/program/stall.h"
#include "mtmc/pipe/v1/builder.pb.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/daemon/confirmation.h"
#include "worker/daemon/inspection.h"
#include "worker/daemon/roofline.h"
#include "worker/daemon/stage_label.h"
#include "worker/daemon/sweep.h"
#include "worker/verify/failure.h"

namespace mtmc::worker {
namespace {

constexpr int kDefaultHiddenSeeds = 3;
// Whoever has executed on the one finds the other next.
constexpr int kMinHiddenSeeds = 2;

constexpr int kStalledRuns = 2;

void SetTime(absl::Time time, google::protobuf::Timestamp& field) {
  field.set_seconds(absl::ToUnixSeconds(time));
  field.set_nanos(static_cast<int32_t>((time - absl::FromUnixSeconds(absl::ToUnixSeconds(time))) /
                                       absl::Nanoseconds(1)));
}

}  // namespace

EvaluationRun::EvaluationRun(const EvaluationContext& context, const v1::EvaluationRequest& request,
                             const Progress& progress)
    : context_(context),
      request_(request),
      options_(request.options()),
      progress_(progress),
      reference_(context.parties.reference),
      roomy_runner_(context.parties.runner, reference_),
      runner_(roomy_runner_),
      verifier_(runner_, reference_),
      builds_(context.parties.builder) {
  evaluation().set_fingerprint(request.fingerprint());
  evaluation().set_worker(context.options.worker);
  evaluation().set_session(context.options.session);
  for (const std::string& name : context.options.isolation) evaluation().add_isolation(name);
  evaluation().set_isolation_level(context.options.isolation_level);
}

v1::LeaseResult EvaluationRun::Execute() {
  MaybeEnd end = RunStages();
  Unload();
  evaluation().set_kernel_seconds(evaluation().kernel_seconds() + runner_.seconds());
  if (end) Finish(*std::move(end));
  return std::move(result_);
}

MaybeEnd EvaluationRun::RunStages() {
  if (auto refusal = RefuseIsolation(options_.min_isolation(), context_.options)) {
    return *std::move(refusal);
  }
  MaybeEnd end = InStage(v1::STAGE_BUILD, &EvaluationRun::Build);
  if (!end) end = InStage(v1::STAGE_VERIFY, &EvaluationRun::Verify);
  if (!end) end = InStage(v1::STAGE_TUNE, &EvaluationRun::Tune);
  if (!end) end = InStage(v1::STAGE_MEASURE, &EvaluationRun::Measure);
  const bool is_profiled = !options_.omit_profile() && IsWorthProfile(request_, evaluation());
  if (!end && is_profiled) end = InStage(v1::STAGE_PROFILE, &EvaluationRun::Profile);
  return end;
}

MaybeEnd EvaluationRun::InStage(v1::Stage stage, MaybeEnd (EvaluationRun::*body)()) {
  progress_(stage);
  stage_ = stage;
  trace::Span traced = trace::Span::Start(StageLabel(stage));
  const base::TraceScope scope(traced.context());
  v1::StageSpan& span = *evaluation().add_spans();
  span.set_stage(stage);
  SetTime(context_.clock.Now(), *span.mutable_start_time());
  MaybeEnd end = (this->*body)();
  SetTime(context_.clock.Now(), *span.mutable_end_time());
  const auto* failure = end ? std::get_if<v1::Failure>(&*end) : nullptr;
  if (failure != nullptr) {
    traced.Set("mtmc.failure.kind",
               base::EnumWord(v1::Failure::Kind_Name(failure->kind()), "KIND_"));
  }
  return end;
}

// A child that was killed from outside, by an operator or by the kernel that ran
// out of memory, and a device that fails its canary say nothing about the
// candidate. Whatever repeats this is stopped by the coordinator's limit on lost
// work. A failed candidate has no time.
void EvaluationRun::Finish(StageEnd end) {
  if (auto* trouble = std::get_if<v1::WorkerFailure>(&end)) {
    *result_.mutable_worker_failure() = std::move(*trouble);
  } else if (auto* problem = std::get_if<v1::JobFailure>(&end)) {
    *result_.mutable_problem_failure() = std::move(*problem);
  } else {
    auto& failure = std::get<v1::Failure>(end);
    if (failure.kind() == v1::Failure::KIND_UNSPECIFIED) {
      return Finish(WorkerTrouble("CHILD_KILLED",
                                  absl::StrCat(failure.message(), ": ", failure.diagnostics())));
    }
    *evaluation().mutable_failure() = std::move(failure);
    evaluation().clear_measurement();
    evaluation().clear_comparisons();
    evaluation().clear_confirmation();
    evaluation().clear_confirmed();
  }
}

MaybeEnd EvaluationRun::Build() {
  auto text = context_.ReadProgram(request_);
  if (!text.ok()) {
    return WorkerTrouble("ARTIFACT_UNAVAILABLE", std::string(text.status().message()));
  }
  text_ = *std::move(text);
  if (MaybeEnd end = LoadReference()) return end;
  auto parsed = ParseText(text_);
  if (auto* failure = std::get_if<v1::Failure>(&parsed)) return std::move(*failure);
  const kernel::Program& program = program_.emplace(std::get<kernel::Program>(std::move(parsed)));
  if (MaybeEnd end =
          CheckPlan(program, inspection_, request_.allowed_calls(), context_.options.device)) {
    return end;
  }
  BuildQueue::Answer building =
      builds_.Build(BuildRequestOf(program, text_, options_, context_.options),
                    TimeoutOr(options_.build_timeout(), kBuildTimeout));
  verifier_.PrepareAhead(VerifierOptions(), /*is_winner=*/IsAskedEverything(request_),
                         [&] { return BuildQueue::IsReady(building); });
  BuiltVariants built = building.get();
  if (auto* failure = std::get_if<v1::Failure>(&built)) return std::move(*failure);
  variants_ = std::move(std::get<std::vector<BuiltVariant>>(built));
  return std::nullopt;
}

MaybeEnd EvaluationRun::LoadReference() {
  const auto path = context_.fetch(request_.problem().source());
  if (!path.ok()) {
    return WorkerTrouble("ARTIFACT_UNAVAILABLE", std::string(path.status().message()));
  }
  auto loaded = LoadProblem(reference_, *path, request_.problem(), context_.options.torch_device,
                            {}, kLoadTimeout);
  if (!loaded.ok()) {
    return WorkerTrouble(FailureOfReference(loaded.status()).reason(),
                         std::string(loaded.status().message()));
  }
  if (loaded->has_failure()) return loaded->failure();
  inspection_ = std::move(*loaded->mutable_loaded()->mutable_inspection());
  return std::nullopt;
}

// Puts one variant on the device.
MaybeEnd EvaluationRun::LoadVariant(const BuiltVariant& variant, absl::Duration timeout) {
  const auto& calls = request_.allowed_calls();
  const auto reply =
      runner_.Call(LoadRequestOf(variant, text_, {calls.begin(), calls.end()}), timeout);
  if (auto failure = FailureOf(reply, stage_)) return *std::move(failure);
  outputs_stay_ = reply.response.loaded().outputs_stay();
  return std::nullopt;
}

MaybeEnd EvaluationRun::Verify() {
  return VerifyVariant(variants_.front(), /*is_last=*/variants_.size() < 2);
}

MaybeEnd EvaluationRun::VerifyVariant(const BuiltVariant& variant, bool is_last) {
  const absl::Duration timeout = TimeoutOr(options_.verify_timeout(), kVerifyTimeout);
  if (MaybeEnd end = LoadVariant(variant, timeout)) return end;
  loaded_variant_ = static_cast<size_t>(&variant - variants_.data());
  *evaluation().mutable_tuned() = variant.variant.parameters();
  Verifier::Options options = VerifierOptions();
  options.prepares_fresh = is_last;
  options.outputs_stay = outputs_stay_;
  verified_ = verifier_.Verify(options);
  *evaluation().mutable_checks() = verified_.checks;
  return Accept(verified_);
}

Verifier::Options EvaluationRun::VerifierOptions() const {
  const int seeds = options_.hidden_seeds() > 0 ? std::max(options_.hidden_seeds(), kMinHiddenSeeds)
                                                : kDefaultHiddenSeeds;
  return {.hidden_seeds = seeds, .timeout = TimeoutOr(options_.verify_timeout(), kVerifyTimeout)};
}

// Takes down what verification found; an end unless it is good.
MaybeEnd EvaluationRun::Accept(const Verification& verification) {
  if (const auto& trouble = verifier_.trouble()) return WorkerTrouble(*trouble);
  evaluation().set_verdict(verification.verdict);
  evaluation().mutable_errors()->Assign(verification.errors.begin(), verification.errors.end());
  evaluation().mutable_satisfied()->Assign(verification.satisfied.begin(),
                                           verification.satisfied.end());
  evaluation().set_kernelbench_allclose(verification.kernelbench_allclose);
  if (!verification.failure) return std::nullopt;
  v1::Failure failure = *verification.failure;
  failure.set_stage(stage_);
  return failure;
}

// Screens every variant on the public workload; the fastest passes the whole
// verification again.
MaybeEnd EvaluationRun::Tune() {
  if (variants_.size() < 2) return std::nullopt;
  const auto& calls = request_.allowed_calls();
  Sweep sweep(runner_, verifier_,
              {.text = text_,
               .allowed_calls = {calls.begin(), calls.end()},
               .is_cold = !options_.hot_cache(),
               .deadline = absl::Now() + TimeoutOr(options_.tune_timeout(), kTuneTimeout)});
  auto swept = sweep.Run(variants_);
  if (auto* end = std::get_if<StageEnd>(&swept)) return std::move(*end);
  const auto& outcome = std::get<Sweep::Outcome>(swept);
  evaluation().mutable_variants()->Assign(outcome.variants.begin(), outcome.variants.end());
  return VerifyVariant(variants_[outcome.best], /*is_last=*/true);
}

MaybeEnd EvaluationRun::Measure() {
  MeasuredSession session;
  if (MaybeEnd end = TakeSession(FirstSession(options_, context_.options.device), session))
    return end;
  *evaluation().mutable_measurement() = session.measurement;
  evaluation().mutable_comparisons()->Assign(session.comparisons.begin(),
                                             session.comparisons.end());
  const double seconds = evaluation().measurement().median_seconds();
  std::string reason =
      WhyImpossible(inspection_, context_.options.device, !options_.hot_cache(), seconds);
  if (!reason.empty()) {
    return Convict(MakeFailure(v1::Failure::KIND_CHEAT, stage_, std::move(reason)));
  }
  is_ahead_ = IsAhead(request_, session);
  const bool may_win = MayWin(request_, session);
  const Confirmation confirmation = DecideConfirmation(request_, session);
  evaluation().set_skipped_confirmation(!may_win || confirmation == Confirmation::kSkipped);
  const bool is_measured_again = confirmation == Confirmation::kNeeded;
  // A compiler works beside what is not timed.
  std::vector<Stalled> stalled;
  if (may_win) {
    stalled = BuildStalled();
    if (MaybeEnd end = VerifyTimedSets()) return end;
  }
  if (may_win || is_measured_again) {
    if (MaybeEnd end = Reload(is_measured_again)) return end;
    // The runner times what it has executed.
    if (MaybeEnd end = may_win ? VerifyWinner() : VerifyReloaded()) return end;
  }
  for (const Stalled& each : stalled) each.build.wait();
  if (is_measured_again) {
    if (MaybeEnd end = MeasureAgain()) return end;
  }
  if (stalled.empty()) return std::nullopt;
  const int runs = kStalledRuns / static_cast<int>(stalled.size());
  for (Stalled& each : stalled) {
    if (MaybeEnd end = VerifyStalled(each, runs)) return end;
  }
  // What is profiled was executed, too.
  if (MaybeEnd end = Reload(/*in_another_process=*/false)) return end;
  return VerifyReloaded();
}

// What was timed is compared with the oracle once more, all of it.
MaybeEnd EvaluationRun::VerifyTimedSets() {
  const Verification again =
      verifier_.VerifyKept(TimeoutOr(options_.measure_timeout(), kMeasureTimeout));
  if (MaybeEnd end = ConvictUnless(again)) return end;
  evaluation().mutable_checks()->set_verified_timed_sets(static_cast<int>(verifier_.kept().size()));
  return std::nullopt;
}

std::vector<EvaluationRun::Stalled> EvaluationRun::BuildStalled() {
  std::vector<Stalled> found;
  for (const auto places : {kernel::StallPlaces::kBeginnings, kernel::StallPlaces::kMiddles}) {
    const std::string text = kernel::WithStalledBlocks(*program_, context_.delay_seed, places);
    if (text.empty()) continue;
    pipe::v1::BuilderRequest request = BuildRequestOf(*program_, text, options_, context_.options);
    request.mutable_build()->clear_variants();
    *request.mutable_build()->add_variants() = variants_[loaded_variant_].variant;
    const absl::Duration timeout = TimeoutOr(options_.build_timeout(), kBuildTimeout);
    found.push_back({places, builds_.Build(std::move(request), timeout)});
  }
  return found;
}

MaybeEnd EvaluationRun::VerifyStalled(Stalled& stalled, int runs) {
  const BuiltVariants built = stalled.build.get();
  // What compiled before is not to blame if it does not now.
  if (std::holds_alternative<v1::Failure>(built)) return std::nullopt;
  // Nor if it takes more registers than its blocks have, since it waits in the middle.
  const bool counts_all = stalled.places == kernel::StallPlaces::kBeginnings;
  const absl::Duration timeout = TimeoutOr(options_.verify_timeout(), kVerifyTimeout);
  if (MaybeEnd end = LoadVariant(std::get<std::vector<BuiltVariant>>(built).front(), timeout)) {
    return counts_all ? std::move(end) : std::nullopt;
  }
  for (int run = 0; run < runs; ++run) {
    Verification again = verifier_.VerifyAgain(timeout);
    if (again.failure && again.failure->kind() == v1::Failure::KIND_WRONG_RESULT) {
      again.failure->set_kind(v1::Failure::KIND_NONDETERMINISTIC);
      again.failure->set_message(
          absl::StrCat("wrong when some blocks are late: ", again.failure->message()));
    } else if (again.failure && !counts_all) {
      return std::nullopt;
    }
    if (MaybeEnd end = ConvictUnless(again)) return end;
  }
  return std::nullopt;
}

MaybeEnd EvaluationRun::VerifyWinner() {
  const Verification winner =
      verifier_.VerifyWinner({.timeout = TimeoutOr(options_.verify_timeout(), kVerifyTimeout),
                              .outputs_stay = outputs_stay_,
                              .numbers = kernel::NumbersOf(*program_)});
  v1::VerificationSummary& checks = *evaluation().mutable_checks();
  const std::string oracle = WeakerOracle(checks.oracle(), winner.checks.oracle());
  checks.MergeFrom(winner.checks);
  checks.set_oracle(oracle);
  if (winner.failure) {
    evaluation().mutable_errors()->Assign(winner.errors.begin(), winner.errors.end());
  }
  if (MaybeEnd end = ConvictUnless(winner)) return end;
  checks.set_is_thorough(true);
  MergeInto(verified_, winner);
  return Accept(verified_);
}

MaybeEnd EvaluationRun::Reload(bool in_another_process) {
  if (in_another_process && context_.options.change_runner) context_.options.change_runner();
  return LoadVariant(variants_[loaded_variant_],
                     TimeoutOr(options_.measure_timeout(), kMeasureTimeout));
}

MaybeEnd EvaluationRun::VerifyReloaded() {
  return ConvictUnless(
      verifier_.VerifyAgain(TimeoutOr(options_.measure_timeout(), kMeasureTimeout)));
}

MaybeEnd EvaluationRun::MeasureAgain() {
  MeasuredSession session;
  if (MaybeEnd end = TakeSession(SecondSession(options_, context_.options.device), session))
    return end;
  Confirm(session, evaluation());
  return std::nullopt;
}

MaybeEnd EvaluationRun::TakeSession(const SessionPlan& plan, MeasuredSession& session) {
  const absl::Duration timeout = TimeoutOr(options_.measure_timeout(), kMeasureTimeout);
  auto taken = MeasureSession({runner_, reference_, verifier_, context_.offsets}, context_.clock,
                              plan, timeout, *evaluation().mutable_checks());
  if (auto* failure = std::get_if<v1::Failure>(&taken)) return Convict(std::move(*failure));
  if (const auto* trouble = std::get_if<ReferenceTrouble>(&taken)) return WorkerTrouble(*trouble);
  session = std::move(std::get<MeasuredSession>(taken));
  evaluation().set_kernel_seconds(evaluation().kernel_seconds() + session.baseline_seconds);
  return std::nullopt;
}

// The candidate was verified, but what it did later says otherwise.
MaybeEnd EvaluationRun::Convict(v1::Failure failure) {
  failure.set_stage(stage_);
  const auto verdict = VerdictOf(failure.kind());
  if (verdict != v1::Evaluation::VERDICT_UNSPECIFIED) evaluation().set_verdict(verdict);
  return failure;
}

MaybeEnd EvaluationRun::ConvictUnless(const Verification& verification) {
  if (const auto& trouble = verifier_.trouble()) return WorkerTrouble(*trouble);
  return verification.failure ? Convict(*verification.failure) : std::nullopt;
}

// A profile that cannot be had does not fail the candidate: it is correct and
// timed. One that contradicts the time does.
MaybeEnd EvaluationRun::Profile() {
  const double seconds = evaluation().measurement().median_seconds();
  const bool is_fastest =
      is_ahead_ && context_.counter_rule.Wants(request_.problem().source().sha256(), seconds);
  pipe::v1::RunnerRequest request;
  request.mutable_profile()->set_with_counters(
      !options_.omit_counters() && (is_fastest || (is_ahead_ && request_.needs_profile())));
  // The others a search hardly reads.
  request.mutable_profile()->set_hardware_only(!IsAskedEverything(request_));
  auto reply = runner_.Call(request, kProfileTimeout);
  if (reply.is_answered() && reply.response.has_profile()) {
    *evaluation().mutable_profile() = std::move(*reply.response.mutable_profile());
  }
  if (auto failure = CheckActivity(*program_, evaluation().profile(), evaluation().measurement())) {
    return Convict(*std::move(failure));
  }
  Explain(SpeedOfLightOf(inspection_, context_.options.device), seconds,
          *evaluation().mutable_profile());
  return std::nullopt;
}

void EvaluationRun::Unload() {
  verifier_.DropFresh();
  pipe::v1::RunnerRequest request;
  request.mutable_unload();
  runner_.Call(request, kProfileTimeout);
}

}  // namespace mtmc::worker
