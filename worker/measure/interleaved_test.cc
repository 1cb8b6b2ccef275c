// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/interleaved.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"

namespace mtmc::worker {
namespace {

using testing::FakeClock;
using testing::IsOk;
using testing::StatusIs;

// A sampler of constant speed that moves the clock and writes down its turns.
Sampler Steady(FakeClock& clock, double seconds, const std::string& name,
               std::vector<std::string>& log) {
  return [&clock, seconds, name, &log](const BlockRequest& request) -> absl::StatusOr<SampleBlock> {
    log.push_back(request.with_yardstick ? name + " and yardstick" : name);
    clock.Advance(absl::Seconds(seconds * (request.warmups + request.samples)));
    return SampleBlock{.seconds =
                           std::vector<double>(static_cast<size_t>(request.samples), seconds)};
  };
}

TEST_CASE("SampleInterleaved takes turns until all sides are steady", "[measure]") {
  FakeClock clock;
  std::vector<std::string> log;
  const NoiseStoppingRule rule({.min_samples = 20, .min_slow_samples = 20});

  auto samples = SampleInterleaved(Steady(clock, 1e-3, "c", log), {Steady(clock, 2e-3, "b", log)},
                                   rule, clock, {.time = absl::Milliseconds(10)});

  REQUIRE_THAT(samples.status(), IsOk());
  CHECK(samples->stopped_by == StoppingRule::Reason::kNoise);
  CHECK(samples->candidate.Seconds().size() >= 20);
  CHECK(samples->baselines[0].turns.size() == samples->candidate.turns.size());
  // The first turn finds the block length; every other round of the next ones is reversed.
  CHECK(samples->candidate.turns.front().seconds.size() == 1);
  const std::vector<std::string> order(log.begin() + 2, log.begin() + 8);
  CHECK(order == std::vector<std::string>{"c", "b", "b", "c", "c", "b"});
}

TEST_CASE("SampleInterleaved times the yardstick where a side is short", "[measure]") {
  FakeClock clock;
  std::vector<std::string> log;
  const NoiseStoppingRule rule({});

  auto samples = SampleInterleaved(Steady(clock, 8e-6, "c", log), {Steady(clock, 30e-6, "b", log)},
                                   rule, clock);

  REQUIRE_THAT(samples.status(), IsOk());
  CHECK(log[1] == "b");
  CHECK(log[2] == "c and yardstick");
  CHECK(log[3] == "b and yardstick");
  // No side has one.
  CHECK(log[4] == "b");
  CHECK(log.back() != "c and yardstick");
}

TEST_CASE("SampleInterleaved times the yardstick of processes that have one to the end",
          "[measure]") {
  FakeClock clock;
  std::vector<std::string> log;
  auto with_yardstick = [&](const std::string& name) -> Sampler {
    Sampler steady = Steady(clock, 8e-6, name, log);
    return [steady](const BlockRequest& request) {
      auto block = steady(request);
      if (request.with_yardstick) block->yardstick_seconds.assign(block->seconds.size(), 4e-6);
      return block;
    };
  };

  auto samples =
      SampleInterleaved(with_yardstick("c"), {with_yardstick("b")}, NoiseStoppingRule({}), clock);

  REQUIRE_THAT(samples.status(), IsOk());
  CHECK_THAT(log.back(), Catch::EndsWith("and yardstick"));
  CHECK(samples->candidate.turns.back().yardstick_seconds.size() ==
        samples->candidate.turns.back().seconds.size());
}

TEST_CASE("SampleInterleaved times no yardstick where nothing is compared", "[measure]") {
  FakeClock clock;
  std::vector<std::string> log;

  REQUIRE(SampleInterleaved(Steady(clock, 8e-6, "c", log), {}, NoiseStoppingRule({}), clock).ok());

  CHECK(log.back() == "c");
}

TEST_CASE("SampleInterleaved takes longer turns where short ones decide nothing", "[measure]") {
  FakeClock clock;
  std::vector<int> samples;
  // Every other request takes twice as long.
  const Sampler noisy = [&](const BlockRequest& request) -> absl::StatusOr<SampleBlock> {
    samples.push_back(request.samples);
    const double seconds = samples.size() % 2 == 0 ? 1e-4 : 2e-4;
    clock.Advance(absl::Seconds(seconds * (request.warmups + request.samples)));
    return SampleBlock{.seconds =
                           std::vector<double>(static_cast<size_t>(request.samples), seconds)};
  };

  REQUIRE(SampleInterleaved(noisy, {noisy}, NoiseStoppingRule({.max_samples = 300}), clock,
                            {.time = absl::Milliseconds(2), .first_time = absl::Milliseconds(1)})
              .ok());

  // Of 0.2 ms each, and of 0.1 ms each.
  CHECK(samples.at(2) == 5);
  CHECK(samples.at(3) == 10);
  CHECK(samples.at(samples.size() - 2) + samples.back() == 10 + 20);
}

TEST_CASE("SampleInterleaved ends on time when kernels are slow", "[measure]") {
  FakeClock clock;
  std::vector<std::string> log;
  const NoiseStoppingRule rule({.max_time = absl::Seconds(2)});

  auto samples = SampleInterleaved(Steady(clock, 1.5, "c", log), {}, rule, clock,
                                   {.time = absl::Milliseconds(10)});

  REQUIRE_THAT(samples.status(), IsOk());
  CHECK(samples->stopped_by == StoppingRule::Reason::kTime);
  CHECK(samples->candidate.Seconds().size() == 1);
}

TEST_CASE("SampleInterleaved returns the first error of a sampler", "[measure]") {
  FakeClock clock;
  const NoiseStoppingRule rule({});
  const Sampler broken = [](const BlockRequest&) -> absl::StatusOr<SampleBlock> {
    return absl::UnavailableError("runner died");
  };

  auto samples = SampleInterleaved(broken, {}, rule, clock, {.time = absl::Milliseconds(10)});

  CHECK_THAT(samples.status(), StatusIs(absl::StatusCode::kUnavailable, "runner died"));
}

}  // namespace
}  // namespace mtmc::worker
