// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/interleaved.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
  ProcessOffsets offsets;
  std::vector<std::string> log;
  const NoiseStoppingRule rule({.min_samples = 20, .min_slow_samples = 20});

  auto samples = SampleInterleaved(Steady(clock, 1e-3, "c", log), {Steady(clock, 2e-3, "b", log)},
                                   rule, clock, offsets, {.time = absl::Milliseconds(10)});

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
  ProcessOffsets offsets;
  std::vector<std::string> log;
  const NoiseStoppingRule rule({});

  auto samples = SampleInterleaved(Steady(clock, 8e-6, "c", log), {Steady(clock, 30e-6, "b", log)},
                                   rule, clock, offsets);

  REQUIRE_THAT(samples.status(), IsOk());
  CHECK(log[1] == "b");
  CHECK(log[2] == "c and yardstick");
  CHECK(log[3] == "b and yardstick");
  // No side has one.
  CHECK(log[4] == "b");
  CHECK(log.back() != "c and yardstick");
}

// As Steady, by a process of that number that has a yardstick. Each turn has another time,
// in steps of `jitter` seconds, so that there is something to be found out.
Sampler Short(FakeClock& clock, int64_t process, double jitter, std::vector<std::string>& log) {
  const std::string name = absl::StrCat(process);
  return [&clock, process, jitter, name, &log,
          calls = int64_t{0}](const BlockRequest& request) mutable -> absl::StatusOr<SampleBlock> {
    log.push_back(request.with_yardstick ? name + " and yardstick" : name);
    clock.Advance(absl::Seconds(8e-6 * (request.warmups + request.samples)));
    const double later = jitter * static_cast<double>(++calls % process);
    const auto count = static_cast<size_t>(request.samples);
    SampleBlock block{.seconds = std::vector<double>(count, 8e-6 + later), .process = process};
    if (request.with_yardstick) block.yardstick_seconds.assign(count, 4e-6 + later);
    return block;
  };
}

TEST_CASE("SampleInterleaved times the yardstick of processes that it does not know yet",
          "[measure]") {
  FakeClock clock;
  ProcessOffsets offsets;
  std::vector<std::string> log;

  auto samples = SampleInterleaved(Short(clock, 7, 1e-7, log), {Short(clock, 5, 1e-7, log)},
                                   NoiseStoppingRule({.max_samples = 80}), clock, offsets);

  REQUIRE_THAT(samples.status(), IsOk());
  CHECK(samples->candidate.process() == 7);
  CHECK(samples->candidate.turns.back().yardstick_seconds.size() ==
        samples->candidate.turns.back().seconds.size());
  CHECK(offsets.Find(5, 7));
}

TEST_CASE("SampleInterleaved looks at processes that are known in one turn of eight", "[measure]") {
  FakeClock clock;
  ProcessOffsets offsets;
  for (int turn = 0; turn < 10; ++turn) {
    offsets.Add({.yardstick_seconds = {4.0e-6}, .process = 5},
                {.yardstick_seconds = {4.0e-6}, .process = 7});
  }
  std::vector<std::string> log;

  auto samples = SampleInterleaved(Short(clock, 7, 0, log), {Short(clock, 5, 0, log)},
                                   NoiseStoppingRule({.min_turns = 20}), clock, offsets);

  REQUIRE_THAT(samples.status(), IsOk());
  REQUIRE(samples->candidate.turns.size() > 10);
  for (size_t turn = 0; turn < samples->candidate.turns.size(); ++turn) {
    CAPTURE(turn);
    CHECK(samples->candidate.turns[turn].yardstick_seconds.empty() == (turn % 8 != 0));
  }
}

TEST_CASE("SampleInterleaved times no yardstick where nothing is compared", "[measure]") {
  FakeClock clock;
  ProcessOffsets offsets;
  std::vector<std::string> log;

  REQUIRE(
      SampleInterleaved(Steady(clock, 8e-6, "c", log), {}, NoiseStoppingRule({}), clock, offsets)
          .ok());

  CHECK(log.back() == "c");
}

TEST_CASE("SampleInterleaved takes longer turns where short ones decide nothing", "[measure]") {
  FakeClock clock;
  ProcessOffsets offsets;
  std::vector<int> samples;
  // Every other request takes twice as long.
  const Sampler noisy = [&](const BlockRequest& request) -> absl::StatusOr<SampleBlock> {
    samples.push_back(request.samples);
    const double seconds = samples.size() % 2 == 0 ? 1e-4 : 2e-4;
    clock.Advance(absl::Seconds(seconds * (request.warmups + request.samples)));
    return SampleBlock{.seconds =
                           std::vector<double>(static_cast<size_t>(request.samples), seconds)};
  };

  REQUIRE(SampleInterleaved(noisy, {noisy}, NoiseStoppingRule({.max_samples = 300}), clock, offsets,
                            {.time = absl::Milliseconds(2), .first_time = absl::Milliseconds(1)})
              .ok());

  // Of 0.2 ms each, and of 0.1 ms each.
  CHECK(samples.at(2) == 5);
  CHECK(samples.at(3) == 10);
  CHECK(samples.at(samples.size() - 2) + samples.back() == 10 + 20);
}

TEST_CASE("SampleInterleaved ends on time when kernels are slow", "[measure]") {
  FakeClock clock;
  ProcessOffsets offsets;
  std::vector<std::string> log;
  const NoiseStoppingRule rule({.max_time = absl::Seconds(2)});

  auto samples = SampleInterleaved(Steady(clock, 1.5, "c", log), {}, rule, clock, offsets,
                                   {.time = absl::Milliseconds(10)});

  REQUIRE_THAT(samples.status(), IsOk());
  CHECK(samples->stopped_by == StoppingRule::Reason::kTime);
  CHECK(samples->candidate.Seconds().size() == 1);
}

TEST_CASE("SampleInterleaved returns the first error of a sampler", "[measure]") {
  FakeClock clock;
  ProcessOffsets offsets;
  const NoiseStoppingRule rule({});
  const Sampler broken = [](const BlockRequest&) -> absl::StatusOr<SampleBlock> {
    return absl::UnavailableError("runner died");
  };

  auto samples =
      SampleInterleaved(broken, {}, rule, clock, offsets, {.time = absl::Milliseconds(10)});

  CHECK_THAT(samples.status(), StatusIs(absl::StatusCode::kUnavailable, "runner died"));
}

}  // namespace
}  // namespace mtmc::worker
