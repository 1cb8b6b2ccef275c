// SPDX-License-Identifier: Apache-2.0
#include "worker/bench/compare_bench.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "worker/daemon/shifted_turns.h"
#include "worker/measure/interleaved.h"
#include "worker/measure/statistics.h"

namespace mtmc::worker {
namespace {

using Role = SyntheticRunner::Role;

// Samples of one point of the calibration: 200 give 0.1 % of error at 1.5 % of noise;
// long kernels have less noise, and need not take longer than the time below.
constexpr int kCalibrationBlocks = 40;
constexpr int kCalibrationBlock = 5;
constexpr absl::Duration kWarmUpTime = absl::Milliseconds(500);
constexpr int64_t kWarmUpLoops = 256;
constexpr absl::Duration kCalibrationTime = absl::Milliseconds(300);

}  // namespace

int CompareCase::Count(ComparisonResult::Outcome outcome) const {
  return static_cast<int>(std::count_if(rows.begin(), rows.end(), [outcome](const SessionRow& row) {
    return row.result.outcome == outcome;
  }));
}

CompareBench::CompareBench(SyntheticRunner& first, SyntheticRunner& second, Options options)
    : first_(first), second_(second), options_(std::move(options)) {}

absl::StatusOr<std::vector<CompareCase>> CompareBench::Run() {
  MTMC_ASSIGN_OR_RETURN(std::vector<CompareCase> cases, MakeCases());
  std::vector<size_t> order;
  for (size_t i = 0; i < cases.size(); ++i) {
    order.insert(order.end(), static_cast<size_t>(options_.runs), i);
  }
  std::shuffle(order.begin(), order.end(), std::mt19937_64(options_.seed));
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && i % static_cast<size_t>(options_.sessions_per_process) == 0) {
      MTMC_RETURN_IF_ERROR(first_.Renew());
      MTMC_RETURN_IF_ERROR(second_.Renew());
    }
    CompareCase& one = cases[order[i]];
    MTMC_ASSIGN_OR_RETURN(SessionRow row, RunSession(one));
    one.rows.push_back(std::move(row));
    options_.progress(static_cast<int>(i) + 1, static_cast<int>(order.size()));
  }
  return cases;
}

absl::StatusOr<std::vector<CompareCase>> CompareBench::MakeCases() {
  // An idle device is slower than a busy one, and takes a while to notice.
  const absl::Time warm = absl::Now() + kWarmUpTime;
  while (absl::Now() < warm) MTMC_RETURN_IF_ERROR(Measure(kWarmUpLoops).status());
  std::vector<CompareCase> cases;
  for (const double length : options_.lengths) {
    const auto calibrated = Calibrate(length, [this](int64_t loops) { return Measure(loops); });
    if (absl::IsFailedPrecondition(calibrated.status())) {
      options_.left_out(length, std::string(calibrated.status().message()));
      continue;
    }
    MTMC_ASSIGN_OR_RETURN(const LoopTime line, calibrated);
    const int64_t loops = line.LoopsFor(length);
    for (const double slowdown : options_.slowdowns) {
      const int64_t more = line.LoopsFor(slowdown * line.SecondsOf(loops));
      cases.push_back({.seconds = length,
                       .slowdown = slowdown,
                       .real_slowdown = line.SecondsOf(more) / line.SecondsOf(loops),
                       .baseline_loops = loops,
                       .candidate_loops = more});
    }
  }
  return cases;
}

absl::StatusOr<double> CompareBench::Measure(int64_t loops) {
  MTMC_RETURN_IF_ERROR(first_.Load(options_.text, options_.binary, loops, Role::kBaseline));
  const Sampler sampler = first_.MakeSampler();
  Series series;
  const absl::Time end = absl::Now() + kCalibrationTime;
  for (int block = 0; block < kCalibrationBlocks && absl::Now() < end; ++block) {
    MTMC_ASSIGN_OR_RETURN(SampleBlock samples,
                          sampler({.samples = kCalibrationBlock, .warmups = block == 0 ? 2 : 0}));
    series.turns.push_back(std::move(samples));
  }
  const std::vector<double> seconds = series.Seconds();
  if (seconds.empty()) return absl::UnavailableError("every sample was throttled");
  return MidMean(seconds);
}

absl::StatusOr<SessionRow> CompareBench::RunSession(const CompareCase& one) {
  const bool is_swapped = one.rows.size() % 2 == 1;
  SyntheticRunner& candidate = is_swapped ? second_ : first_;
  SyntheticRunner& baseline = is_swapped ? first_ : second_;
  MTMC_RETURN_IF_ERROR(
      candidate.Load(options_.text, options_.binary, one.candidate_loops, Role::kCandidate));
  MTMC_RETURN_IF_ERROR(
      baseline.Load(options_.text, options_.binary, one.baseline_loops, Role::kBaseline));
  const base::RealClock clock;
  const absl::Time start = clock.Now();
  MTMC_ASSIGN_OR_RETURN(InterleavedSamples samples,
                        SampleInterleaved(candidate.MakeSampler(), {baseline.MakeSampler()},
                                          NoiseStoppingRule({}), clock, offsets_, options_.turns));
  SessionRow row{.is_swapped = is_swapped};
  row.session_seconds = absl::ToDoubleSeconds(clock.Now() - start);
  DropShiftedTurns(samples.candidate);
  DropShiftedTurns(samples.baselines[0]);
  const std::vector<double> seconds = samples.candidate.Seconds();
  const auto offset = offsets_.Find(samples.baselines[0], samples.candidate);
  row.result = CompareSeries(samples.baselines[0], samples.candidate, {.offset = offset});
  row.candidate_seconds = Median(seconds);
  row.noise_ratio = NoiseRatio(seconds);
  row.samples = static_cast<int>(seconds.size());
  row.stopped_by = std::string(ToText(samples.stopped_by));
  return row;
}

}  // namespace mtmc::worker
