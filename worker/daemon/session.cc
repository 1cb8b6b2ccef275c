// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/session.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "common/fleet/worker_demand.h"
#include "worker/daemon/shifted_turns.h"
#include "worker/daemon/timed_candidate.h"
#include "worker/device/clock_filter.h"
#include "worker/measure/comparison.h"
#include "worker/measure/interleaved.h"
#include "worker/measure/statistics.h"

namespace mtmc::worker {
namespace {

// Inputs that took the process down are not tried again (mtmc_reference/peril.py), which may
// happen three times.
constexpr int kLoadAttempts = 4;

// Of a second session, which has only to agree with the first one.
constexpr int kSecondMinSamples = 6;
constexpr int kSecondMinTurns = 4;
constexpr double kSecondErrorRatio = 0.01;
constexpr double kSecondIntervalRatio = 0.02;

// On a GPU the other side leaves little behind; on a CPU its threads spin for a while.
constexpr absl::Duration kLongGpuSample = absl::Milliseconds(1);

absl::Status ReferenceError(const Reply<pipe::v1::ReferenceResponse>& reply) {
  using Ending = Reply<pipe::v1::ReferenceResponse>::Ending;
  if (reply.is_answered()) return absl::FailedPreconditionError(reply.response.failure().message());
  if (reply.ending == Ending::kTimedOut) return absl::DeadlineExceededError(reply.detail);
  return absl::UnavailableError(reply.detail);
}

// Adds the device time of its executions to `kernel_seconds`.
Sampler BaselineSampler(ReferenceParty& reference, v1::Baseline baseline, bool is_cold,
                        absl::Time deadline, double& kernel_seconds) {
  return [&reference, baseline, is_cold, deadline,
          &kernel_seconds](const BlockRequest& block_request) -> absl::StatusOr<SampleBlock> {
    pipe::v1::ReferenceRequest request;
    auto& time = *request.mutable_time_baseline();
    time.set_baseline(baseline);
    time.set_samples(block_request.samples);
    time.set_is_cold(is_cold);
    time.set_warmups(block_request.warmups);
    time.set_with_yardstick(is_cold && block_request.with_yardstick);
    const auto reply = reference.Call(request, deadline - absl::Now());
    if (!reply.is_answered() || reply.response.has_failure()) return ReferenceError(reply);
    const auto& timed = reply.response.timed();
    SampleBlock block{
        .seconds = {timed.samples_seconds().begin(), timed.samples_seconds().end()},
        .yardstick_seconds = {timed.yardstick_seconds().begin(), timed.yardstick_seconds().end()},
        .launches = std::max(1, timed.launches()),
        .process = reply.process,
        .clock_hertz = timed.clock_hertz()};
    // Warm-ups are not timed; each takes what a sample does.
    if (block_request.samples > 0) {
      kernel_seconds += std::accumulate(block.seconds.begin(), block.seconds.end(), 0.0) *
                        (block_request.samples + block_request.warmups) / block_request.samples;
    }
    return block;
  };
}

double ClockOf(const Series& series) {
  std::vector<double> clocks;
  for (const SampleBlock& turn : series.turns) {
    if (!turn.seconds.empty()) clocks.push_back(turn.clock_hertz);
  }
  return UsualClock(clocks);
}

// Makes the times those of inputs that the program had never seen.
void Stretch(Series& series, double slowdown) {
  if (slowdown <= 0) return;
  for (SampleBlock& turn : series.turns) {
    for (double& seconds : turn.seconds) seconds *= slowdown;
  }
}

v1::Measurement ToMeasurement(const Series& series, bool is_cold, StoppingRule::Reason stopped_by) {
  const std::vector<double> seconds = series.Seconds();
  v1::Measurement measurement;
  measurement.set_median_seconds(Median(seconds));
  measurement.set_noise_ratio(NoiseRatio(seconds));
  measurement.set_error_ratio(MedianErrorRatio(seconds));
  measurement.mutable_samples_seconds()->Assign(seconds.begin(), seconds.end());
  measurement.set_throttled_samples(series.Count(&SampleBlock::throttled));
  measurement.set_shifted_samples(series.Count(&SampleBlock::shifted));
  measurement.set_late_samples(series.Count(&SampleBlock::late));
  measurement.set_clock_hertz(ClockOf(series));
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

v1::Comparison ToComparison(v1::Baseline baseline, const Series& baseline_series,
                            const Series& candidate, const ProcessOffsets& offsets, bool is_cold,
                            StoppingRule::Reason stopped_by) {
  const ComparisonResult result = CompareSeries(
      baseline_series, candidate, {.offset = offsets.Find(baseline_series, candidate)});
  v1::Comparison comparison;
  comparison.set_baseline(baseline);
  comparison.set_outcome(ToProto(result.outcome));
  comparison.set_speedup(result.speedup);
  comparison.set_speedup_low(result.interval.low);
  comparison.set_speedup_high(result.interval.high);
  comparison.set_offset_seconds(result.offset_seconds);
  *comparison.mutable_baseline_measurement() = ToMeasurement(baseline_series, is_cold, stopped_by);
  return comparison;
}

}  // namespace

absl::StatusOr<pipe::v1::ReferenceResponse> LoadProblem(
    ReferenceParty& reference, const std::string& path, const v1::Problem& problem,
    const std::string& torch_device, const v1::ReferenceLimits& limits, absl::Duration timeout) {
  constexpr auto kDied = Reply<pipe::v1::ReferenceResponse>::Ending::kDied;
  pipe::v1::ReferenceRequest request;
  auto& load = *request.mutable_load();
  load.set_path(path);
  *load.mutable_problem() = problem;
  load.set_device(torch_device);
  *load.mutable_limits() = limits;
  auto reply = reference.Call(request, timeout);
  for (int attempt = 1; attempt < kLoadAttempts && reply.ending == kDied; ++attempt) {
    reply = reference.Call(request, timeout);
  }
  if (!reply.is_answered()) return ReferenceError(reply);
  return std::move(reply.response);
}

absl::StatusOr<std::vector<v1::BaselineTime>> TimeBaselines(
    ReferenceParty& reference, const google::protobuf::RepeatedField<int>& baselines,
    base::Clock& clock, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  pipe::v1::ReferenceRequest prepare;
  prepare.mutable_prepare()->set_workload(0);
  const auto prepared = reference.Call(prepare, timeout);
  if (!prepared.is_answered() || prepared.response.has_failure()) return ReferenceError(prepared);
  std::vector<v1::BaselineTime> times;
  double unused_seconds = 0;
  ProcessOffsets unused_offsets;
  for (const int number : baselines) {
    const auto baseline = static_cast<v1::Baseline>(number);
    const Sampler sampler =
        BaselineSampler(reference, baseline, /*is_cold=*/true, deadline, unused_seconds);
    MTMC_ASSIGN_OR_RETURN(
        const InterleavedSamples samples,
        SampleInterleaved(sampler, {}, NoiseStoppingRule({}), clock, unused_offsets));
    const std::vector<double> seconds = samples.candidate.Seconds();
    v1::BaselineTime& time = times.emplace_back();
    time.set_baseline(baseline);
    time.set_median_seconds(Median(seconds));
    time.set_noise_ratio(NoiseRatio(seconds));
    time.set_samples(static_cast<int32_t>(seconds.size()));
    time.mutable_samples_seconds()->Assign(seconds.begin(), seconds.end());
    time.set_clock_hertz(ClockOf(samples.candidate));
  }
  return times;
}

TurnPlan TurnsOn(const v1::DeviceFacts& device) {
  const bool is_gpu = fleet::HasDialect(device, v1::DIALECT_CUDA);
  return is_gpu ? TurnPlan{.long_sample = kLongGpuSample} : TurnPlan{};
}

SessionPlan FirstSession(const v1::EvaluationOptions& options, const v1::DeviceFacts& device) {
  SessionPlan plan{.is_cold = !options.hot_cache(), .turns = TurnsOn(device)};
  for (const int baseline : options.baselines()) {
    plan.baselines.push_back(static_cast<v1::Baseline>(baseline));
  }
  if (plan.baselines.empty()) plan.baselines.push_back(v1::BASELINE_EAGER);
  if (options.min_samples() > 0) {
    plan.rule.min_samples = options.min_samples();
    plan.rule.min_slow_samples = options.min_samples();
  }
  if (options.max_noise_ratio() > 0) plan.rule.max_error_ratio = options.max_noise_ratio();
  return plan;
}

SessionPlan SecondSession(const v1::EvaluationOptions& options, const v1::DeviceFacts& device) {
  SessionPlan plan = FirstSession(options, device);
  plan.baselines.resize(1);
  plan.rule.min_samples = kSecondMinSamples;
  plan.rule.min_turns = kSecondMinTurns;
  plan.rule.max_error_ratio = std::max(plan.rule.max_error_ratio, kSecondErrorRatio);
  plan.rule.max_interval_ratio = kSecondIntervalRatio;
  plan.has_fresh_inputs = false;
  return plan;
}

std::variant<MeasuredSession, v1::Failure, ReferenceTrouble> MeasureSession(
    const SessionParties& parties, base::Clock& clock, const SessionPlan& plan,
    absl::Duration timeout, v1::VerificationSummary& checks) {
  const absl::Time deadline = absl::Now() + timeout;
  TimedCandidate candidate(
      parties.runner, parties.verifier,
      {.is_cold = plan.is_cold, .has_fresh_inputs = plan.has_fresh_inputs, .deadline = deadline});
  MeasuredSession session;
  std::vector<Sampler> samplers;
  for (const v1::Baseline baseline : plan.baselines) {
    samplers.push_back(BaselineSampler(parties.reference, baseline, plan.is_cold, deadline,
                                       session.baseline_seconds));
  }
  // The yardstick is cold, as all that it tells of.
  ProcessOffsets no_offsets;
  ProcessOffsets& offsets = plan.is_cold ? parties.offsets : no_offsets;
  auto samples =
      SampleInterleaved([&](const BlockRequest& request) { return candidate.Take(request); },
                        samplers, NoiseStoppingRule(plan.rule), clock, offsets, plan.turns);
  absl::Status status = samples.status();
  if (status.ok()) status = candidate.Conclude(samples->candidate.Seconds());
  candidate.AddCounts(checks);
  if (candidate.failure()) return *candidate.failure();
  if (candidate.trouble()) return *candidate.trouble();
  if (!status.ok()) return ReferenceTrouble{"BASELINE_FAILED", std::string(status.message())};

  DropShiftedTurns(samples->candidate);
  Stretch(samples->candidate, checks.fresh_slowdown());
  session.measurement = ToMeasurement(samples->candidate, plan.is_cold, samples->stopped_by);
  for (size_t i = 0; i < plan.baselines.size(); ++i) {
    DropShiftedTurns(samples->baselines[i]);
    session.comparisons.push_back(ToComparison(plan.baselines[i], samples->baselines[i],
                                               samples->candidate, offsets, plan.is_cold,
                                               samples->stopped_by));
  }
  return session;
}

}  // namespace mtmc::worker
