// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/evaluator.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "kernel/graph/graph_proto.h"
#include "kernel/program/checker.h"
#include "kernel/program/interface.h"
#include "kernel/program/parser.h"
#include "mtmc/v1/builder.pb.h"
#include "mtmc/v1/reference.pb.h"
#include "mtmc/v1/runner.pb.h"
#include "worker/daemon/roofline.h"
#include "worker/daemon/session.h"
#include "worker/verify/verifier.h"

namespace mtmc::worker {
namespace {

// Deadlines of the stages where the job names none. Tracing a large model takes
// tens of seconds; everything else is seconds unless it hangs.
constexpr absl::Duration kLoadTimeout = absl::Minutes(5);
constexpr absl::Duration kBuildTimeout = absl::Minutes(2);
constexpr absl::Duration kVerifyTimeout = absl::Minutes(2);
constexpr absl::Duration kTuneTimeout = absl::Minutes(2);
constexpr absl::Duration kMeasureTimeout = absl::Minutes(2);
constexpr absl::Duration kProfileTimeout = absl::Seconds(30);

// A user's file that takes the interpreter down does so again; an interpreter
// that was killed for something else, such as memory, is not its fault.
constexpr int kInspectionAttempts = 2;

constexpr char kReferenceDied[] = "REFERENCE_DIED";

constexpr int kDefaultVariants = 32;
constexpr int kDefaultHiddenSeeds = 2;

// Samples of one variant in a sweep: the median of five separates variants that
// differ by a few percent, which is all that screening must do.
constexpr int kScreenSamples = 5;

absl::Duration Or(const google::protobuf::Duration& asked, absl::Duration fallback) {
  const absl::Duration value = absl::Seconds(asked.seconds()) + absl::Nanoseconds(asked.nanos());
  return value > absl::ZeroDuration() ? value : fallback;
}

v1::LeaseResult WorkerTrouble(std::string reason, std::string message) {
  v1::LeaseResult result;
  result.mutable_worker_failure()->set_reason(std::move(reason));
  result.mutable_worker_failure()->set_message(std::move(message));
  return result;
}

v1::Failure MakeFailure(v1::Failure::Kind kind, v1::Stage stage, std::string message,
                        std::string diagnostics = "") {
  v1::Failure failure;
  failure.set_kind(kind);
  failure.set_stage(stage);
  failure.set_message(std::move(message));
  failure.set_diagnostics(std::move(diagnostics));
  return failure;
}

// The problem's failure when it could not be loaded or timed.
v1::JobFailure FailureOfReference(const absl::Status& status) {
  v1::JobFailure failure;
  if (absl::IsFailedPrecondition(status)) {
    failure.set_reason("BASELINE_FAILED");
    failure.set_message(absl::StrCat("a baseline failed: ", std::string(status.message()),
                                     "; choose another with --baseline"));
    return failure;
  }
  const bool is_late = absl::IsDeadlineExceeded(status);
  failure.set_reason(is_late ? "REFERENCE_TIMEOUT" : kReferenceDied);
  failure.set_message(absl::StrCat("the process that runs the model ",
                                   is_late ? "did not answer in time" : "died",
                                   "; make the model's sizes smaller, or see the diagnostics"));
  failure.set_diagnostics(std::string(status.message()));
  return failure;
}

// A sweep's candidate binary.
struct BuiltVariant {
  v1::Variant variant;
  std::string binary;
};

}  // namespace

// One evaluation from its request to its result. Each stage returns false when
// the evaluation is over; `result_` is complete then.
class Evaluator::Run {
 public:
  Run(const Evaluator& evaluator, const v1::EvaluationRequest& request, const Progress& progress)
      : owner_(evaluator),
        request_(request),
        options_(request.options()),
        progress_(progress),
        verifier_(evaluator.parties_.runner, evaluator.parties_.reference) {
    evaluation().set_fingerprint(request.fingerprint());
    evaluation().set_worker(owner_.options_.worker);
    evaluation().set_session(owner_.options_.session);
    for (const std::string& name : owner_.options_.isolation) evaluation().add_isolation(name);
  }

  v1::LeaseResult Execute() {
    if (InStage(v1::STAGE_BUILD, &Run::Build) && InStage(v1::STAGE_VERIFY, &Run::Verify) &&
        InStage(v1::STAGE_TUNE, &Run::Tune) && InStage(v1::STAGE_MEASURE, &Run::Measure)) {
      if (!options_.omit_profile()) InStage(v1::STAGE_PROFILE, &Run::Profile);
    }
    Unload();
    if (IsBlameless()) {
      const v1::Failure failure = evaluation().failure();
      GiveUp("CHILD_KILLED", absl::StrCat(failure.message(), ": ", failure.diagnostics()));
    }
    return std::move(result_);
  }

 private:
  // A child that was killed from outside, by an operator or by the kernel that ran
  // out of memory, and a device that fails its canary say nothing about the
  // candidate. Whatever repeats this is stopped by the coordinator's limit on lost
  // work.
  bool IsBlameless() const {
    return result_.evaluation().has_failure() &&
           result_.evaluation().failure().kind() == v1::Failure::KIND_UNSPECIFIED;
  }

  v1::Evaluation& evaluation() { return *result_.mutable_evaluation(); }

  bool InStage(v1::Stage stage, bool (Run::*body)()) {
    progress_(stage);
    stage_ = stage;
    v1::StageSpan span;
    span.set_stage(stage);
    SetTime(*span.mutable_start_time());
    const bool goes_on = (this->*body)();
    SetTime(*span.mutable_end_time());
    if (result_.has_evaluation()) *evaluation().add_spans() = std::move(span);
    return goes_on;
  }

  void SetTime(google::protobuf::Timestamp& field) const {
    const absl::Time now = owner_.clock_.Now();
    field.set_seconds(absl::ToUnixSeconds(now));
    field.set_nanos(static_cast<int32_t>((now - absl::FromUnixSeconds(absl::ToUnixSeconds(now))) /
                                         absl::Nanoseconds(1)));
  }

  // The candidate is at fault.
  bool Fail(v1::Failure failure) {
    *evaluation().mutable_failure() = std::move(failure);
    return false;
  }

  // The worker or the reference is at fault.
  bool GiveUp(std::string reason, std::string message) {
    result_ = WorkerTrouble(std::move(reason), std::move(message));
    return false;
  }

  // Ends the run unless the verification is good.
  bool Accept(const Verification& verification) {
    if (const auto& trouble = verifier_.trouble()) {
      return GiveUp(trouble->reason, trouble->message);
    }
    evaluation().set_verdict(verification.verdict);
    evaluation().mutable_errors()->Assign(verification.errors.begin(), verification.errors.end());
    evaluation().mutable_satisfied()->Assign(verification.satisfied.begin(),
                                             verification.satisfied.end());
    evaluation().set_kernelbench_allclose(verification.kernelbench_allclose);
    if (!verification.failure) return true;
    v1::Failure failure = *verification.failure;
    failure.set_stage(stage_);
    return Fail(std::move(failure));
  }

  bool Build() {
    auto path = owner_.fetch_(request_.problem().source());
    auto program_path = owner_.fetch_(request_.program());
    if (!path.ok()) return GiveUp("ARTIFACT_UNAVAILABLE", std::string(path.status().message()));
    if (!program_path.ok()) {
      return GiveUp("ARTIFACT_UNAVAILABLE", std::string(program_path.status().message()));
    }
    auto text = base::ReadFile(*program_path);
    if (!text.ok()) return GiveUp("ARTIFACT_UNAVAILABLE", std::string(text.status().message()));
    text_ = *std::move(text);

    auto loaded = LoadProblem(owner_.parties_.reference, *path, request_.problem(),
                              owner_.options_.torch_device, {}, kLoadTimeout);
    if (!loaded.ok()) {
      return GiveUp(FailureOfReference(loaded.status()).reason(),
                    std::string(loaded.status().message()));
    }
    if (loaded->has_failure()) {
      *result_.mutable_problem_failure() = loaded->failure();
      return false;
    }
    inspection_ = loaded->loaded().inspection();
    if (!CheckText()) return false;
    return Compile();
  }

  bool CheckText() {
    kernel::ParseResult parsed = kernel::ParseProgram(text_);
    if (!parsed.program) {
      return Fail(MakeFailure(v1::Failure::KIND_PARSE, stage_, "the text is not a program",
                              ToText(parsed.diagnostics)));
    }
    auto graph = kernel::FromProto(inspection_.graph());
    if (!graph.ok()) return GiveUp("BAD_GRAPH", std::string(graph.status().message()));
    program_ = *std::move(parsed.program);
    const v1::DeviceFacts& device = owner_.options_.device;
    kernel::CheckLimits limits{
        .max_threads_per_block = device.max_threads_per_block(),
        .max_shared_bytes = device.shared_memory_per_block_bytes(),
        .max_buffer_bytes = device.memory_bytes(),
        .allowed_calls = {request_.allowed_calls().begin(), request_.allowed_calls().end()}};
    const auto diagnostics = kernel::CheckProgram(program_, kernel::FromGraph(*graph), limits,
                                                  kernel::DefaultBindings(program_));
    if (!diagnostics.empty()) {
      return Fail(MakeFailure(v1::Failure::KIND_CHECK, stage_,
                              absl::StrCat("the plan is not sound: ", diagnostics.front().message),
                              ToText(diagnostics)));
    }
    return true;
  }

  bool Compile() {
    v1::BuilderRequest request;
    auto& build = *request.mutable_build();
    build.set_program(text_);
    *build.mutable_device() = owner_.options_.device;
    build.set_device_index(owner_.options_.device_index);
    const int limit = options_.max_variants() > 0 ? options_.max_variants() : kDefaultVariants;
    for (const auto& bindings : kernel::Variants(program_, limit)) {
      build.add_variants()->mutable_parameters()->insert(bindings.begin(), bindings.end());
    }
    auto reply = owner_.parties_.builder.Call(request, Or(options_.build_timeout(), kBuildTimeout));
    using Ending = Reply<v1::BuilderResponse>::Ending;
    if (reply.ending == Ending::kTimedOut) {
      return Fail(MakeFailure(v1::Failure::KIND_TIMEOUT, stage_,
                              "the compiler did not finish in time", reply.detail));
    }
    if (reply.ending == Ending::kOutOfMemory) {
      return Fail(MakeFailure(v1::Failure::KIND_OUT_OF_MEMORY, stage_,
                              "the compiler took more memory than it may", reply.detail));
    }
    if (reply.ending == Ending::kKilled || reply.ending == Ending::kUnavailable) {
      return Fail(MakeFailure(v1::Failure::KIND_UNSPECIFIED, stage_,
                              "the builder process is not there", reply.detail));
    }
    if (!reply.is_answered() || reply.response.built().empty()) {
      return Fail(MakeFailure(v1::Failure::KIND_CRASH, stage_,
                              "the compiler crashed on this source", reply.detail));
    }
    if (reply.response.built(0).has_failure()) return Fail(reply.response.built(0).failure());
    for (auto& built : *reply.response.mutable_built()) {
      if (built.has_failure()) continue;
      variants_.push_back(
          {std::move(*built.mutable_variant()), std::move(*built.mutable_binary())});
    }
    return true;
  }

  // Puts one variant on the device.
  std::optional<v1::Failure> Load(const BuiltVariant& variant, absl::Duration timeout) {
    v1::RunnerRequest request;
    auto& load = *request.mutable_load();
    load.set_program(text_);
    load.set_binary(variant.binary);
    *load.mutable_parameters() = variant.variant.parameters();
    *load.mutable_allowed_calls() = request_.allowed_calls();
    return FailureOf(owner_.parties_.runner.Call(request, timeout), stage_);
  }

  bool Verify() {
    const absl::Duration timeout = Or(options_.verify_timeout(), kVerifyTimeout);
    if (auto failure = Load(variants_.front(), timeout)) return Fail(*std::move(failure));
    *evaluation().mutable_tuned() = variants_.front().variant.parameters();
    return Accept(verifier_.Verify({.hidden_seeds = HiddenSeeds(), .timeout = timeout}));
  }

  int HiddenSeeds() const {
    return options_.hidden_seeds() > 0 ? options_.hidden_seeds() : kDefaultHiddenSeeds;
  }

  // Screens every variant on the public workload and keeps the fastest. Each is
  // checked before it is timed; the winner passes the whole verification again.
  bool Tune() {
    if (variants_.size() < 2) return true;
    const absl::Time deadline = absl::Now() + Or(options_.tune_timeout(), kTuneTimeout);
    std::vector<std::pair<double, size_t>> ranking;
    for (size_t i = 0; i < variants_.size() && absl::Now() < deadline; ++i) {
      v1::Variant& variant = variants_[i].variant;
      if (!Screen(variants_[i], i == 0, deadline - absl::Now())) return false;
      if (variant.has_median_seconds()) ranking.emplace_back(variant.median_seconds(), i);
    }
    if (ranking.empty()) return Fail(variants_.front().variant.failure());
    std::sort(ranking.begin(), ranking.end());
    for (const auto& [seconds, index] : ranking) {
      *evaluation().add_variants() = variants_[index].variant;
    }
    return Confirm(ranking.front().second);
  }

  // False only when the run is over. A variant's own failure is written into it.
  bool Screen(BuiltVariant& built, bool is_loaded, absl::Duration timeout) {
    if (!is_loaded) {
      if (auto failure = Load(built, timeout)) {
        if (failure->kind() == v1::Failure::KIND_UNSPECIFIED) return Fail(*std::move(failure));
        *built.variant.mutable_failure() = *std::move(failure);
        return true;
      }
      Verification verification = verifier_.VerifyAgain(timeout);
      if (const auto& trouble = verifier_.trouble())
        return GiveUp(trouble->reason, trouble->message);
      if (verification.failure) {
        if (verification.failure->kind() == v1::Failure::KIND_UNSPECIFIED) {
          return Fail(*std::move(verification.failure));
        }
        *built.variant.mutable_failure() = *std::move(verification.failure);
        return true;
      }
    }
    v1::RunnerRequest time;
    time.mutable_time()->set_samples(kScreenSamples);
    time.mutable_time()->set_warmups(1);
    time.mutable_time()->set_is_cold(!options_.hot_cache());
    const auto reply = owner_.parties_.runner.Call(time, timeout);
    if (auto failure = FailureOf(reply, stage_)) {
      if (failure->kind() == v1::Failure::KIND_UNSPECIFIED) return Fail(*std::move(failure));
      *built.variant.mutable_failure() = *std::move(failure);
    } else {
      const auto& samples = reply.response.timed().samples_seconds();
      built.variant.set_median_seconds(
          Median({samples.data(), static_cast<size_t>(samples.size())}));
    }
    return true;
  }

  bool Confirm(size_t index) {
    const absl::Duration timeout = Or(options_.verify_timeout(), kVerifyTimeout);
    if (auto failure = Load(variants_[index], timeout)) return Fail(*std::move(failure));
    *evaluation().mutable_tuned() = variants_[index].variant.parameters();
    return Accept(verifier_.Verify({.hidden_seeds = HiddenSeeds(), .timeout = timeout}));
  }

  bool Measure() {
    const absl::Duration timeout = Or(options_.measure_timeout(), kMeasureTimeout);
    auto session = MeasureSession(owner_.parties_.runner, owner_.parties_.reference, owner_.clock_,
                                  options_, timeout);
    if (const auto* failure = std::get_if<v1::Failure>(&session)) return Fail(*failure);
    if (const auto* trouble = std::get_if<ReferenceTrouble>(&session)) {
      return GiveUp(trouble->reason, trouble->message);
    }
    auto& measured = std::get<MeasuredSession>(session);
    *evaluation().mutable_measurement() = std::move(measured.measurement);
    evaluation().mutable_comparisons()->Assign(measured.comparisons.begin(),
                                               measured.comparisons.end());
    if (!Accept(verifier_.Recheck(timeout))) return Withdraw();
    const double seconds = evaluation().measurement().median_seconds();
    if (!options_.hot_cache() && IsImpossible(inspection_, owner_.options_.device, seconds)) {
      evaluation().set_verdict(v1::Evaluation::VERDICT_CHEATED);
      Fail(MakeFailure(
          v1::Failure::KIND_CHEAT, stage_,
          absl::StrCat("measured ", seconds * 1e3, " ms, below what memory bandwidth allows")));
      return Withdraw();
    }
    return true;
  }

  // A failed candidate has no time.
  bool Withdraw() {
    if (result_.has_evaluation()) {
      evaluation().clear_measurement();
      evaluation().clear_comparisons();
    }
    return false;
  }

  // Failing here does not fail the candidate: it is correct and timed.
  bool Profile() {
    v1::RunnerRequest request;
    request.mutable_profile();
    auto reply = owner_.parties_.runner.Call(request, kProfileTimeout);
    if (reply.is_answered() && reply.response.has_profile()) {
      *evaluation().mutable_profile() = std::move(*reply.response.mutable_profile());
    }
    Explain(SpeedOfLightOf(inspection_, owner_.options_.device),
            evaluation().measurement().median_seconds(), *evaluation().mutable_profile());
    return true;
  }

  void Unload() {
    v1::RunnerRequest request;
    request.mutable_unload();
    owner_.parties_.runner.Call(request, kProfileTimeout);
  }

  const Evaluator& owner_;
  const v1::EvaluationRequest& request_;
  const v1::EvaluationOptions& options_;
  const Progress& progress_;
  Verifier verifier_;
  v1::Stage stage_ = v1::STAGE_UNSPECIFIED;
  std::string text_;
  kernel::Program program_;
  v1::Inspection inspection_;
  // Those that compiled; the default one is first.
  std::vector<BuiltVariant> variants_;
  v1::LeaseResult result_;
};

Evaluator::Evaluator(Parties parties, Fetch fetch, base::Clock& clock, Options options)
    : parties_(parties), fetch_(std::move(fetch)), clock_(clock), options_(std::move(options)) {}

v1::LeaseResult Evaluator::Evaluate(const v1::EvaluationRequest& request,
                                    const Progress& progress) {
  return Run(*this, request, progress).Execute();
}

v1::LeaseResult Evaluator::Inspect(const v1::InspectionRequest& request, const Progress& progress) {
  v1::LeaseResult result;
  for (int attempt = 0; attempt < kInspectionAttempts; ++attempt) {
    result = InspectOnce(request, progress);
    if (result.problem_failure().reason() != kReferenceDied) break;
  }
  return result;
}

v1::LeaseResult Evaluator::InspectOnce(const v1::InspectionRequest& request,
                                       const Progress& progress) {
  progress(v1::STAGE_MEASURE);
  auto path = fetch_(request.problem().source());
  if (!path.ok()) {
    return WorkerTrouble("ARTIFACT_UNAVAILABLE", std::string(path.status().message()));
  }
  v1::LeaseResult result;
  const absl::Duration load_timeout = Or(request.limits().trace_timeout(), kLoadTimeout);
  auto loaded = LoadProblem(parties_.reference, *path, request.problem(), options_.torch_device,
                            request.limits(), load_timeout);
  if (!loaded.ok()) {
    *result.mutable_problem_failure() = FailureOfReference(loaded.status());
    return result;
  }
  if (loaded->has_failure()) {
    *result.mutable_problem_failure() = loaded->failure();
    return result;
  }
  v1::Inspection inspection = loaded->loaded().inspection();
  auto times = TimeBaselines(parties_.reference, request.baselines(), clock_, kMeasureTimeout);
  if (!times.ok()) {
    *result.mutable_problem_failure() = FailureOfReference(times.status());
    return result;
  }
  inspection.mutable_baselines()->Assign(times->begin(), times->end());
  *result.mutable_inspection() = std::move(inspection);
  return result;
}

}  // namespace mtmc::worker
