// SPDX-License-Identifier: Apache-2.0

// The whole procedure (turns, stopping rule, comparison) against simulated devices:
// how often it says what is true. The noise is chosen worse than what an H200
// showed: samples, outliers, drift, blocks that are slow as a whole, processes that
// differ, and events that tick every 32 ns.

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "common/testing/fake_clock.h"
#include "worker/measure/comparison.h"
#include "worker/measure/interleaved.h"

namespace mtmc::worker {
namespace {

using testing::FakeClock;
using Outcome = ComparisonResult::Outcome;

constexpr double kTick = 32e-9;
// Flush, poison and copies before each sample.
constexpr double kPreparation = 250e-6;
constexpr int kRuns = 100;

struct Noise {
  // Standard deviations: relative and absolute of a sample, relative of a block and
  // of a process.
  double sample_ratio = 0.004;
  double sample_seconds = 100e-9;
  double block_ratio = 0.002;
  double process_ratio = 0.002;
  // Share of samples that take up to a half longer.
  double outlier_ratio = 0.02;
  // Change of the clock over one second.
  double drift_per_second = 0.02;
  // Standard deviations of what a process adds to whatever it runs, and of what the place
  // of the data adds, another one in each block.
  double offset_seconds = 0;
  double place_seconds = 0;
  // Whether processes time a yardstick.
  bool has_yardstick = true;
};

// As an H200 showed it for kernels of 4 to 7 us.
constexpr Noise kShortNoise{.sample_seconds = 170e-9,
                            .process_ratio = 0.0024,
                            .offset_seconds = 80e-9,
                            .place_seconds = 55e-9};
constexpr double kYardstickSeconds = 4.1e-6;

// One process that runs a kernel of a known length.
class SimulatedProcess {
 public:
  SimulatedProcess(double seconds, const Noise& noise, FakeClock& clock, uint64_t seed)
      : noise_(noise),
        clock_(clock),
        start_(clock.Now()),
        number_(static_cast<int64_t>(seed)),
        random_(seed) {
    seconds_ = seconds * (1 + noise.process_ratio * normal_(random_));
    offset_ = noise.offset_seconds * normal_(random_);
  }

  SampleBlock Take(const BlockRequest& request) {
    const double block = 1 + noise_.block_ratio * normal_(random_);
    const double place = noise_.place_seconds * normal_(random_);
    SampleBlock samples{.process = number_};
    for (int i = 0; i < request.warmups + request.samples; ++i) {
      const double seconds = Execute(seconds_ * block + place);
      if (i < request.warmups) continue;
      samples.seconds.push_back(seconds);
      if (!request.with_yardstick || !noise_.has_yardstick) continue;
      samples.yardstick_seconds.push_back(
          Execute(kYardstickSeconds + noise_.place_seconds * normal_(random_)));
    }
    return samples;
  }

 private:
  double Execute(double expected) {
    const double seconds = Draw(expected);
    clock_.Advance(absl::Seconds(seconds + kPreparation));
    return seconds;
  }

  double Draw(double expected) {
    const double drift = 1 + noise_.drift_per_second * absl::ToDoubleSeconds(clock_.Now() - start_);
    double seconds = expected * drift * (1 + noise_.sample_ratio * normal_(random_)) + offset_ +
                     noise_.sample_seconds * normal_(random_);
    if (uniform_(random_) < noise_.outlier_ratio) seconds *= 1 + 0.5 * uniform_(random_);
    return std::max(1.0, std::round(seconds / kTick)) * kTick;
  }

  const Noise& noise_;
  FakeClock& clock_;
  const absl::Time start_;
  const int64_t number_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{0, 1};
  double seconds_ = 0;
  double offset_ = 0;
};

struct Counts {
  int same = 0;
  int faster = 0;
  int slower = 0;
  int ambiguous = 0;
  double mean_session = 0;
  double mean_turns = 0;
};

// `sessions_per_pair` of each pair of processes.
Counts Repeat(double seconds, double slowdown, const Noise& noise, int sessions_per_pair = 1) {
  Counts counts;
  for (uint64_t pair = 0; pair < kRuns / static_cast<uint64_t>(sessions_per_pair); ++pair) {
    FakeClock clock;
    ProcessOffsets offsets;
    const absl::Time start = clock.Now();
    SimulatedProcess candidate(seconds * slowdown, noise, clock, 2 * pair + 1);
    SimulatedProcess baseline(seconds, noise, clock, 2 * pair + 2);
    const auto sampler = [](SimulatedProcess& process) {
      return [&process](const BlockRequest& request) -> absl::StatusOr<SampleBlock> {
        return process.Take(request);
      };
    };
    for (int session = 0; session < sessions_per_pair; ++session) {
      const auto samples =
          SampleInterleaved(sampler(candidate), {sampler(baseline)}, NoiseStoppingRule({}), clock,
                            offsets, {.long_sample = absl::Milliseconds(1)});
      REQUIRE(samples.ok());
      const Series& other = samples->baselines[0];
      const auto offset = offsets.Find(other, samples->candidate);
      const Outcome outcome = CompareSeries(other, samples->candidate, {.offset = offset}).outcome;
      counts.same += outcome == Outcome::kSame ? 1 : 0;
      counts.faster += outcome == Outcome::kFaster ? 1 : 0;
      counts.slower += outcome == Outcome::kSlower ? 1 : 0;
      counts.ambiguous += outcome == Outcome::kAmbiguous ? 1 : 0;
      counts.mean_turns += static_cast<double>(samples->candidate.turns.size()) / kRuns;
    }
    counts.mean_session += absl::ToDoubleSeconds(clock.Now() - start) / kRuns;
  }
  return counts;
}

TEST_CASE("The procedure tells equal programs from slower ones at every length", "[measure]") {
  const auto seconds = GENERATE(5.6e-6, 100e-6, 5e-3);
  const Noise noise = seconds < 15e-6 ? kShortNoise : Noise();

  const Counts equal = Repeat(seconds, 1.00, noise);
  const Counts slower3 = Repeat(seconds, 1.03, noise);
  const Counts slower5 = Repeat(seconds, 1.05, noise);
  const Counts slower10 = Repeat(seconds, 1.10, noise);

  CAPTURE(seconds, equal.same, equal.ambiguous, equal.mean_session);
  CAPTURE(slower3.slower, slower5.slower, slower10.slower, slower3.mean_session);
  CHECK(equal.same >= 0.99 * kRuns);
  CHECK(slower3.slower >= 0.90 * kRuns);
  CHECK(slower5.slower >= 0.99 * kRuns);
  CHECK(slower10.slower == kRuns);
  CHECK(equal.faster + slower3.faster + slower5.faster + slower10.faster == 0);
  CHECK(equal.mean_session < (seconds == 100e-6 ? 0.3 : 1.5));
}

TEST_CASE("The procedure is as good and faster once it knows two processes", "[measure]") {
  const auto seconds = GENERATE(3.5e-6, 5.6e-6);
  constexpr int kSessions = 20;

  const Counts first = Repeat(seconds, 1.00, kShortNoise);
  const Counts equal = Repeat(seconds, 1.00, kShortNoise, kSessions);
  const Counts slower5 = Repeat(seconds, 1.05, kShortNoise, kSessions);
  const Counts slower10 = Repeat(seconds, 1.10, kShortNoise, kSessions);

  CAPTURE(seconds, equal.same, equal.ambiguous, slower5.slower, slower10.slower);
  CAPTURE(first.mean_session, equal.mean_session);
  CHECK(equal.same >= 0.99 * kRuns);
  CHECK(slower5.slower >= 0.95 * kRuns);
  CHECK(slower10.slower == kRuns);
  CHECK(equal.faster + slower5.faster + slower10.faster == 0);
  CHECK(equal.mean_session < 0.7 * first.mean_session);
}

TEST_CASE("The procedure calls no short program faster for what two processes differ by",
          "[measure]") {
  Noise noise = kShortNoise;
  noise.has_yardstick = false;

  const Counts equal = Repeat(5.6e-6, 1.00, noise);
  const Counts slower10 = Repeat(5.6e-6, 1.10, noise);

  CAPTURE(equal.same, slower10.slower, equal.mean_session);
  CHECK(equal.same >= 0.99 * kRuns);
  CHECK(equal.faster + slower10.faster == 0);
  CHECK(slower10.slower >= 0.85 * kRuns);
}

TEST_CASE("The procedure spends its time where two programs are close", "[measure]") {
  const Noise noise{.block_ratio = 0.02};

  const Counts close = Repeat(100e-6, 1.03, noise);
  const Counts far = Repeat(100e-6, 2.0, noise);

  CHECK(far.slower == kRuns);
  CHECK(far.mean_turns < 0.5 * close.mean_turns);
}

TEST_CASE("The procedure does not decide when everything is noise", "[measure]") {
  const Counts counts = Repeat(100e-6, 1.00, {.sample_ratio = 0.3, .block_ratio = 0.1});

  CHECK(counts.faster + counts.slower < 0.02 * kRuns);
}

}  // namespace
}  // namespace mtmc::worker
