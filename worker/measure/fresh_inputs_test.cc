// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/fresh_inputs.h"

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

}  // namespace
}  // namespace mtmc::worker
