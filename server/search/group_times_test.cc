// SPDX-License-Identifier: Apache-2.0
#include "server/search/group_times.h"

#include <catch2/catch.hpp>

#include "server/search/timed_candidate.h"

namespace mtmc::search {
namespace {

using Seconds = std::vector<double>;

constexpr char kSchedule[] =
    "group conv template=library nodes=conv\n"
    "group relu template=pointwise nodes=relu\n"
    "group relu_2 template=pointwise nodes=relu_2\n"
    "group sum template=row nodes=sum\n";

TEST_CASE("Kernels are given to their groups in plan order", "[search]") {
  const auto timed = TimeGroups(TimedCandidate(0, kSchedule,
                                               {{"conv_weight", 1},
                                                {"aten::convolution", 8},
                                                {"relu", 2},
                                                {"relu_2", 3},
                                                {"sum_pieces", 4},
                                                {"sum_total", 5},
                                                {"copy_y", 1}}));
  REQUIRE(timed);
  CHECK(timed->seconds == Seconds{9, 2, 3, 9});
  CHECK(timed->total_seconds() == 23);
}

TEST_CASE("A profile of other kernels gives no times", "[search]") {
  const auto times = [](const std::vector<std::pair<std::string, double>>& kernels) {
    return TimeGroups(TimedCandidate(0, kSchedule, kernels));
  };
  CHECK_FALSE(times({}));
  CHECK_FALSE(times({{"aten::convolution", 8}, {"relu", 2}, {"relu_2", 3}}));
  CHECK_FALSE(times({{"aten::convolution", 8}, {"gelu", 2}, {"relu_2", 3}, {"sum", 1}}));
  CHECK_FALSE(times({{"relu", 2}, {"relu_2", 3}, {"sum", 1}, {"aten::convolution", 8}}));
  CHECK_FALSE(times({{"aten::convolution", 8}, {"relu", 0}, {"relu_2", 3}, {"sum", 1}}));
}

TEST_CASE("Only a correct candidate with a schedule has times", "[search]") {
  const std::string schedule = "group relu template=pointwise nodes=relu\n";
  v1::Candidate candidate = TimedCandidate(0, schedule, {{"relu", 2}});
  CHECK(TimeGroups(candidate));
  candidate.clear_schedule();
  CHECK_FALSE(TimeGroups(candidate));
  candidate.set_schedule("no schedule");
  CHECK_FALSE(TimeGroups(candidate));
  candidate.set_schedule(schedule);
  candidate.mutable_evaluation()->set_verdict(v1::Evaluation::VERDICT_WRONG);
  CHECK_FALSE(TimeGroups(candidate));
}

}  // namespace
}  // namespace mtmc::search
