// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/fresh_inputs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

namespace mtmc::worker {
namespace {

using Catch::Matchers::WithinRel;

const std::vector<double> kUsual = {10, 10, 11, 10, 12, 10, 10, 11};

TEST_CASE("JudgeFresh lets ordinary noise pass", "[measure]") {
  CHECK(JudgeFresh(std::vector<FreshExecution>{{12, 10}}, kUsual) == FreshTime::kAsUsual);
  CHECK(JudgeFresh(std::vector<FreshExecution>{{30, 10}, {10.5, 10}, {11, 10}}, kUsual) ==
        FreshTime::kAsUsual);
}

TEST_CASE("JudgeFresh calls no few executions a replay", "[measure]") {
  CHECK(JudgeFresh(std::vector<FreshExecution>(kFreshForReplay - 1, {30, 10}), kUsual) ==
        FreshTime::kLonger);
}

TEST_CASE("JudgeFresh finds a program that replays what it knows", "[measure]") {
  CHECK(JudgeFresh(std::vector<FreshExecution>(kFreshForReplay, {30, 10}), kUsual) ==
        FreshTime::kReplayed);
}

TEST_CASE("JudgeFresh blames a busy host and not the program", "[measure]") {
  std::vector<FreshExecution> fresh(kFreshForReplay, {30, 10});
  fresh.back().neighbour_seconds = 28;

  CHECK(JudgeFresh(fresh, kUsual) == FreshTime::kLonger);
  CHECK_THAT(FreshSlowdown(fresh, kUsual), WithinRel(30 / 10.0, 1e-9));
}

// Twelve samples, `fast` of which take a tenth of the others.
std::vector<double> WithFast(int fast) {
  std::vector<double> seconds(12, 10);
  std::fill_n(seconds.begin(), fast, 1);
  return seconds;
}

TEST_CASE("HasFastMode sees a third of the samples, and no single ones", "[measure]") {
  CHECK(HasFastMode(WithFast(4)));
  CHECK_FALSE(HasFastMode(WithFast(1)));
  CHECK_FALSE(HasFastMode(WithFast(0)));
}

// Executions of which a third of the neighbours are fast, here and there.
std::vector<FreshExecution> SlowAmongFast(int count) {
  return std::vector<FreshExecution>(static_cast<size_t>(count), {10, 10, {10, 1, 10}});
}

TEST_CASE("A third of replays behind an honest median is found", "[measure]") {
  CHECK(IsFastOnKnownInputsOnly(SlowAmongFast(kMostFreshForModes), WithFast(4)));
  CHECK_FALSE(IsFastOnKnownInputsOnly(SlowAmongFast(24), WithFast(4)));
}

TEST_CASE("A host that is fast now and then is nobody's replay", "[measure]") {
  std::vector<FreshExecution> fresh = SlowAmongFast(kMostFreshForModes);
  SECTION("because fresh executions are fast as well") { fresh[3].seconds = 1; }
  SECTION("because the host has become slow for all") {
    fresh.assign(kMostFreshForModes, {10, 10, {10, 10, 10}});
  }
  SECTION("because few executions tell little") { fresh.resize(16); }
  SECTION("because it was fast for one block in all, whoever ran then") {
    fresh.assign(kMostFreshForModes, {10, 10, {10, 10, 10}});
    fresh[0].neighbours = fresh[1].neighbours = {1, 1, 1};
  }
  CHECK_FALSE(IsFastOnKnownInputsOnly(fresh, WithFast(4)));
}

}  // namespace
}  // namespace mtmc::worker
