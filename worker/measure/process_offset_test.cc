// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/process_offset.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

namespace mtmc::worker {
namespace {

constexpr double kYardstick = 4e-6;
// Of one turn.
constexpr double kNoise = 90e-9;

SampleBlock Turn(int64_t process, double yardstick_seconds) {
  return {.yardstick_seconds = {yardstick_seconds}, .process = process};
}

// Turns of process 1 as the baseline and of a candidate's that takes `offset` longer.
void AddTurns(ProcessOffsets& offsets, int64_t candidate, double offset, int turns) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, kNoise);
  for (int turn = 0; turn < turns; ++turn) {
    offsets.Add(Turn(1, kYardstick), Turn(candidate, kYardstick + offset + noise(random)));
  }
}

TEST_CASE("ProcessOffsets learns from the turns of several sessions", "[measure]") {
  ProcessOffsets offsets;

  AddTurns(offsets, 2, 0.1e-6, 20);
  const auto soon = offsets.Find(1, 2);
  REQUIRE(soon);
  CHECK_FALSE(offsets.IsKnown(1, 2));
  AddTurns(offsets, 2, 0.1e-6, 280);
  const auto later = offsets.Find(1, 2);

  REQUIRE(later);
  CHECK(offsets.IsKnown(1, 2));
  CHECK(later->error_seconds < soon->error_seconds);
  CHECK(std::abs(later->seconds - 0.1e-6) < later->error_seconds);
}

TEST_CASE("ProcessOffsets keeps pairs of processes apart, whichever side they are on",
          "[measure]") {
  ProcessOffsets offsets;
  AddTurns(offsets, 2, 0.2e-6, 50);
  AddTurns(offsets, 3, -0.1e-6, 50);

  CHECK(offsets.Find(1, 2)->seconds == Approx(0.2e-6).epsilon(0.2));
  CHECK(offsets.Find(2, 1)->seconds == -offsets.Find(1, 2)->seconds);
  CHECK(offsets.Find(1, 3)->seconds == Approx(-0.1e-6).epsilon(0.2));
  CHECK_FALSE(offsets.Find(2, 3));
}

TEST_CASE("ProcessOffsets says nothing after a few turns, and nothing that no process has",
          "[measure]") {
  ProcessOffsets offsets;
  AddTurns(offsets, 2, 0.1e-6, 3);
  AddTurns(offsets, 3, 2e-6, 500);

  CHECK_FALSE(offsets.Find(1, 2));
  CHECK_FALSE(offsets.Find(1, 3));
  // It will not be found out by more turns.
  CHECK(offsets.IsKnown(1, 3));
}

TEST_CASE("ProcessOffsets takes down no turn in which a side timed nothing", "[measure]") {
  ProcessOffsets offsets;
  for (int turn = 0; turn < 10; ++turn) offsets.Add(Turn(1, kYardstick), {.process = 2});

  CHECK_FALSE(offsets.Find(1, 2));
}

TEST_CASE("ProcessOffsets follows a pair that changes", "[measure]") {
  ProcessOffsets offsets;
  AddTurns(offsets, 2, 0, 400);
  AddTurns(offsets, 2, 0.3e-6, 400);

  CHECK(offsets.Find(1, 2)->seconds == Approx(0.3e-6).epsilon(0.1));
}

TEST_CASE("ProcessOffsets forgets the oldest pairs", "[measure]") {
  ProcessOffsets offsets;
  for (int64_t process = 2; process < 60; ++process) AddTurns(offsets, process, 0, 10);

  CHECK_FALSE(offsets.Find(1, 2));
  CHECK(offsets.Find(1, 59));
}

}  // namespace
}  // namespace mtmc::worker
