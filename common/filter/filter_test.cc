// SPDX-License-Identifier: Apache-2.0
#include "common/filter/filter.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::filter {
namespace {

using Catch::Matchers::Contains;
using testing::IsOk;

v1::Job MakeJob() {
  v1::Job job;
  job.set_name("projects/p/jobs/j");
  job.set_state(v1::Job::STATE_SUCCEEDED);
  job.set_end_reason(v1::Job::END_REASON_SPEED_OF_LIGHT);
  job.mutable_problem()->set_display_name("l1_gelu");
  job.mutable_problem()->add_fixed("mask");
  job.set_best_speedup(1.75);
  job.mutable_budget_use()->set_trials(12);
  job.mutable_budget_use()->mutable_wall_time()->set_seconds(90);
  job.mutable_create_time()->set_seconds(1'700'000'000);
  (*job.mutable_inspection()->mutable_versions())["torch"] = "2.11.0";
  return job;
}

bool Holds(const std::string& text, const v1::Job& job = MakeJob()) {
  const auto filter = Filter::Parse(text, *v1::Job::descriptor());
  CAPTURE(text);
  REQUIRE_THAT(filter.status(), IsOk());
  return filter->Matches(job);
}

std::string Refusal(const std::string& text) {
  const auto filter = Filter::Parse(text, *v1::Job::descriptor());
  CAPTURE(text);
  REQUIRE_FALSE(filter.ok());
  CHECK(rpc::ErrorReason(filter.status()) == "INVALID_FILTER");
  return std::string(filter.status().message());
}

TEST_CASE("An empty filter holds for everything", "[filter]") {
  CHECK(Holds(""));
  CHECK(Holds("  \n"));
}

TEST_CASE("Each kind of field is compared in its own way", "[filter]") {
  CHECK(Holds("state = SUCCEEDED"));
  CHECK(Holds("state = STATE_SUCCEEDED"));
  CHECK(Holds("end_reason = speed_of_light"));
  CHECK_FALSE(Holds("state != SUCCEEDED"));
  CHECK(Holds("best_speedup > 1.5"));
  CHECK(Holds("best_speedup >= 1.75"));
  CHECK_FALSE(Holds("best_speedup < 1"));
  CHECK(Holds("budget_use.trials = 12"));
  CHECK(Holds("budget_use.trials > 11.5"));
  CHECK(Holds("name = projects/p/jobs/j"));
  CHECK(Holds("budget_use.wall_time <= 90s"));
  CHECK_FALSE(Holds("budget_use.wall_time > 1m30s"));
  CHECK(Holds("create_time >= \"2023-11-14T22:13:20Z\""));
  CHECK_FALSE(Holds("create_time > \"2023-11-14T22:13:20Z\""));
  CHECK(Holds("problem.nonfinite = false"));
}

TEST_CASE("A star at an end of a text stands for any", "[filter]") {
  CHECK(Holds("problem.display_name = \"l1_*\""));
  CHECK(Holds("problem.display_name = *gelu"));
  CHECK(Holds("problem.display_name = '*_g*'"));
  CHECK_FALSE(Holds("problem.display_name = gelu"));
}

TEST_CASE("What is missing equals nothing and has no order", "[filter]") {
  CHECK_FALSE(Holds("failure.reason = NO_CORRECT_CANDIDATE"));
  CHECK(Holds("failure.reason != NO_CORRECT_CANDIDATE"));
  CHECK_FALSE(Holds("best_speedup < 10", v1::Job()));
  CHECK_FALSE(Holds("end_time < \"2030-01-01T00:00:00Z\""));
}

TEST_CASE("The sign : asks for presence and for elements of lists", "[filter]") {
  CHECK(Holds("best_speedup:*"));
  CHECK_FALSE(Holds("failure:*"));
  CHECK(Holds("problem.fixed:mask"));
  CHECK_FALSE(Holds("problem.fixed:x"));
  CHECK(Holds("inspection.versions:*"));
}

TEST_CASE("OR binds closer than AND, NOT closest", "[filter]") {
  // false AND (true OR true)
  CHECK_FALSE(Holds("state = FAILED AND best_speedup > 1 OR best_speedup > 1"));
  CHECK(Holds("(state = FAILED AND best_speedup > 1) OR best_speedup > 1"));
  CHECK(Holds("NOT state = FAILED AND NOT (best_speedup > 2 OR failure:*)"));
}

TEST_CASE("A bad filter is refused with its column and what could stand there", "[filter]") {
  CHECK_THAT(Refusal("stat = X"), Contains("column 1") && Contains("\"stat\" is no field of Job") &&
                                      Contains("best_speedup"));
  CHECK_THAT(Refusal("state = DONE"), Contains("column 9") && Contains("SUCCEEDED"));
  CHECK_THAT(Refusal("state > RUNNING"), Contains("no order"));
  CHECK_THAT(Refusal("best_speedup = fast"), Contains("is a number"));
  CHECK_THAT(Refusal("best_speedup < nan"), Contains("is a number"));
  CHECK_THAT(Refusal("state = RUNNING best_speedup > 1"), Contains("column 17"));
  CHECK_THAT(Refusal("(state = RUNNING"), Contains("\")\" is missing"));
  CHECK_THAT(Refusal("state"), Contains("= != <"));
  CHECK_THAT(Refusal("state ="), Contains("a value is expected"));
  CHECK_THAT(Refusal("name = \"x"), Contains("no end"));
  CHECK_THAT(Refusal("problem = 1"), Contains("problem:*"));
  CHECK_THAT(Refusal("problem.fixed = mask"), Contains("problem.fixed:VALUE") || Contains("list"));
  CHECK_THAT(Refusal("create_time > yesterday"), Contains("2026-11-25T10:00:00Z"));
  CHECK_THAT(Refusal("name.x = 1"), Contains("has no fields"));
  CHECK_THAT(Refusal(std::string(100, '(')), Contains("deeper"));
  CHECK_THAT(Refusal(std::string(3000, 'x')), Contains("longer"));
}

// A random condition with its truth for MakeJob().
struct Drawn {
  std::string text;
  bool is_true;
};

Drawn Draw(std::mt19937& random, int depth) {
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  if (depth == 0 || below(3) == 0) {
    const int number = below(24);
    switch (below(4)) {
      case 0:
        return {"budget_use.trials > " + std::to_string(number), 12 > number};
      case 1:
        return {"budget_use.trials != " + std::to_string(number), 12 != number};
      case 2:
        return {"state = SUCCEEDED", true};
      default:
        return {"problem.display_name = \"x*\"", false};
    }
  }
  const Drawn left = Draw(random, depth - 1);
  if (below(4) == 0) return {"NOT (" + left.text + ")", !left.is_true};
  const Drawn right = Draw(random, depth - 1);
  if (below(2) == 0) {
    return {"(" + left.text + ") AND (" + right.text + ")", left.is_true && right.is_true};
  }
  return {"(" + left.text + ") OR (" + right.text + ")", left.is_true || right.is_true};
}

TEST_CASE("Drawn conditions have the truth that they were drawn with", "[filter]") {
  std::mt19937 random(Catch::rngSeed());
  for (int i = 0; i < 500; ++i) {
    const Drawn drawn = Draw(random, 4);
    if (drawn.text.size() > 2000) continue;
    CHECK(Holds(drawn.text) == drawn.is_true);
  }
}

}  // namespace
}  // namespace mtmc::filter
