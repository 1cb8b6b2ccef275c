// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/session.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "mtmc/v1/runner.pb.h"
#include "worker/measure/comparison.h"
#include "worker/measure/interleaved.h"

namespace mtmc::worker {
namespace {

// Length of one turn: long against the cost of a turn (two pipe messages, about
// 0.2 ms), short against a drift of the clock.
constexpr absl::Duration kBlockTime = absl::Milliseconds(50);

constexpr int kDefaultMinSamples = 20;
constexpr double kDefaultMaxNoise = 0.005;

NoiseStoppingRule RuleOf(const v1::EvaluationOptions& options) {
  return NoiseStoppingRule(
      {.min_samples = options.min_samples() > 0 ? options.min_samples() : kDefaultMinSamples,
       .max_error_ratio =
           options.max_noise_ratio() > 0 ? options.max_noise_ratio() : kDefaultMaxNoise});
}

absl::Status ReferenceError(const Reply<v1::ReferenceResponse>& reply) {
  using Ending = Reply<v1::ReferenceResponse>::Ending;
  if (reply.is_answered()) return absl::FailedPreconditionError(reply.response.failure().message());
  if (reply.ending == Ending::kTimedOut) return absl::DeadlineExceededError(reply.detail);
  return absl::UnavailableError(reply.detail);
}

Sampler BaselineSampler(ReferenceParty& reference, v1::Baseline baseline, bool is_cold,
                        absl::Time deadline) {
  return [&reference, baseline, is_cold, deadline](int count,
                                                   int warmups) -> absl::StatusOr<SampleBlock> {
    v1::ReferenceRequest request;
    auto& time = *request.mutable_time_baseline();
    time.set_baseline(baseline);
    time.set_samples(count);
    time.set_is_cold(is_cold);
    time.set_warmups(warmups);
    const auto reply = reference.Call(request, deadline - absl::Now());
    if (!reply.is_answered() || reply.response.has_failure()) return ReferenceError(reply);
    const auto& samples = reply.response.timed().samples_seconds();
    return SampleBlock{.seconds = {samples.begin(), samples.end()}};
  };
}

// Samples of the loaded program. A failure of the candidate is kept aside,
// because a Sampler can only say that it failed.
class CandidateSampler {
 public:
  CandidateSampler(RunnerParty& runner, bool is_cold, absl::Time deadline)
      : runner_(runner), is_cold_(is_cold), deadline_(deadline) {}

  absl::StatusOr<SampleBlock> Take(int count, int warmups) {
    v1::RunnerRequest request;
    request.mutable_time()->set_samples(count);
    request.mutable_time()->set_is_cold(is_cold_);
    request.mutable_time()->set_warmups(warmups);
    const auto reply = runner_.Call(request, deadline_ - absl::Now());
    failure_ = FailureOf(reply, v1::STAGE_MEASURE);
    if (failure_) return absl::AbortedError(failure_->message());
    const auto& timed = reply.response.timed();
    return SampleBlock{.seconds = {timed.samples_seconds().begin(), timed.samples_seconds().end()},
                       .throttled = timed.throttled_samples()};
  }

  const std::optional<v1::Failure>& failure() const { return failure_; }

 private:
  RunnerParty& runner_;
  const bool is_cold_;
  const absl::Time deadline_;
  std::optional<v1::Failure> failure_;
};

v1::Measurement ToMeasurement(const InterleavedSamples::Series& series, bool is_cold,
                              StoppingRule::Reason stopped_by) {
  v1::Measurement measurement;
  measurement.set_median_seconds(Median(series.seconds));
  measurement.set_noise_ratio(NoiseRatio(series.seconds));
  measurement.mutable_samples_seconds()->Assign(series.seconds.begin(), series.seconds.end());
  measurement.set_throttled_samples(series.throttled);
  measurement.set_is_cold(is_cold);
  measurement.set_stopped_by(std::string(ToText(stopped_by)));
  return measurement;
}

v1::Comparison::Outcome ToProto(ComparisonResult::Outcome outcome) {
  switch (outcome) {
    case ComparisonResult::Outcome::kFaster:
      return v1::Comparison::OUTCOME_FASTER;
    case ComparisonResult::Outcome::kSame:
      return v1::Comparison::OUTCOME_SAME;
    case ComparisonResult::Outcome::kSlower:
      return v1::Comparison::OUTCOME_SLOWER;
    case ComparisonResult::Outcome::kAmbiguous:
      return v1::Comparison::OUTCOME_AMBIGUOUS;
  }
  return v1::Comparison::OUTCOME_UNSPECIFIED;
}

v1::Comparison ToComparison(v1::Baseline baseline,
                            const InterleavedSamples::Series& baseline_series,
                            const InterleavedSamples::Series& candidate, bool is_cold,
                            StoppingRule::Reason stopped_by) {
  const ComparisonResult result = CompareSamples(baseline_series.seconds, candidate.seconds, {});
  v1::Comparison comparison;
  comparison.set_baseline(baseline);
  comparison.set_outcome(ToProto(result.outcome));
  comparison.set_speedup(result.speedup);
  comparison.set_speedup_low(result.interval.low);
  comparison.set_speedup_high(result.interval.high);
  *comparison.mutable_baseline_measurement() = ToMeasurement(baseline_series, is_cold, stopped_by);
  return comparison;
}

std::vector<v1::Baseline> BaselinesOf(const v1::EvaluationOptions& options) {
  std::vector<v1::Baseline> baselines;
  for (const int baseline : options.baselines())
    baselines.push_back(static_cast<v1::Baseline>(baseline));
  if (baselines.empty()) baselines.push_back(v1::BASELINE_EAGER);
  return baselines;
}

}  // namespace

absl::StatusOr<v1::ReferenceResponse> LoadProblem(
    ReferenceParty& reference, const std::string& path, const v1::Problem& problem,
    const std::string& torch_device, const v1::ReferenceLimits& limits, absl::Duration timeout) {
  v1::ReferenceRequest request;
  auto& load = *request.mutable_load();
  load.set_path(path);
  *load.mutable_problem() = problem;
  load.set_device(torch_device);
  *load.mutable_limits() = limits;
  auto reply = reference.Call(request, timeout);
  if (!reply.is_answered()) return ReferenceError(reply);
  return std::move(reply.response);
}

absl::StatusOr<std::vector<v1::BaselineTime>> TimeBaselines(
    ReferenceParty& reference, const google::protobuf::RepeatedField<int>& baselines,
    base::Clock& clock, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  v1::ReferenceRequest prepare;
  prepare.mutable_prepare()->set_workload(0);
  const auto prepared = reference.Call(prepare, timeout);
  if (!prepared.is_answered() || prepared.response.has_failure()) return ReferenceError(prepared);
  std::vector<v1::BaselineTime> times;
  for (const int number : baselines) {
    const auto baseline = static_cast<v1::Baseline>(number);
    const Sampler sampler = BaselineSampler(reference, baseline, /*is_cold=*/true, deadline);
    MTMC_ASSIGN_OR_RETURN(const InterleavedSamples samples,
                          SampleInterleaved(sampler, {}, NoiseStoppingRule({}), clock, kBlockTime));
    v1::BaselineTime& time = times.emplace_back();
    time.set_baseline(baseline);
    time.set_median_seconds(Median(samples.candidate.seconds));
    time.set_noise_ratio(NoiseRatio(samples.candidate.seconds));
    time.set_samples(static_cast<int32_t>(samples.candidate.seconds.size()));
  }
  return times;
}

std::variant<MeasuredSession, v1::Failure, ReferenceTrouble> MeasureSession(
    RunnerParty& runner, ReferenceParty& reference, base::Clock& clock,
    const v1::EvaluationOptions& options, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  const bool is_cold = !options.hot_cache();
  const std::vector<v1::Baseline> baselines = BaselinesOf(options);
  CandidateSampler candidate(runner, is_cold, deadline);
  std::vector<Sampler> samplers;
  for (const v1::Baseline baseline : baselines) {
    samplers.push_back(BaselineSampler(reference, baseline, is_cold, deadline));
  }
  const auto samples =
      SampleInterleaved([&](int count, int warmups) { return candidate.Take(count, warmups); },
                        samplers, RuleOf(options), clock, kBlockTime);
  if (candidate.failure()) return *candidate.failure();
  if (!samples.ok())
    return ReferenceTrouble{"BASELINE_FAILED", std::string(samples.status().message())};

  MeasuredSession session;
  session.measurement = ToMeasurement(samples->candidate, is_cold, samples->stopped_by);
  for (size_t i = 0; i < baselines.size(); ++i) {
    session.comparisons.push_back(ToComparison(baselines[i], samples->baselines[i],
                                               samples->candidate, is_cold, samples->stopped_by));
  }
  return session;
}

}  // namespace mtmc::worker
