// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/speedup_metrics.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace mtmc::coordinator {
namespace {

using Catch::Matchers::Contains;

v1::Job MakeJob(const std::string& problem, double speedup) {
  v1::Job job;
  job.set_name("projects/team/jobs/job-secret");
  job.set_state(v1::Job::STATE_SUCCEEDED);
  job.set_end_reason(v1::Job::END_REASON_TRIALS);
  job.mutable_problem()->set_display_name(problem);
  job.mutable_device()->set_product("H100");
  job.set_best_speedup(speedup);
  return job;
}

v1::Candidate MakeCandidate(v1::Comparison::Outcome outcome, const std::string& schedule) {
  v1::Candidate candidate;
  candidate.set_state(v1::Candidate::STATE_EVALUATED);
  candidate.set_coder("builtin");
  candidate.set_schedule(schedule);
  candidate.mutable_evaluation()->add_comparisons()->set_outcome(outcome);
  candidate.mutable_evaluation()->mutable_profile()->set_speed_of_light_ratio(0.75);
  return candidate;
}

constexpr char kSchedule[] =
    "group a template=row nodes=x\ngroup b template=pointwise nodes=y\n"
    "group c template=row nodes=z\n";

TEST_CASE("A trial counts once for each template it uses", "[coordinator]") {
  metrics::Registry registry("test");
  SpeedupMetrics speedups(registry);

  speedups.CountCandidate(MakeJob("p", 2),
                          MakeCandidate(v1::Comparison::OUTCOME_FASTER, kSchedule));

  const std::string text = registry.Render();
  CHECK_THAT(text, Contains("mtmc_candidates_total{coder=\"builtin\",gpu_product=\"H100\","
                            "outcome=\"faster\"} 1"));
  CHECK_THAT(text,
             Contains("mtmc_template_candidates_total{outcome=\"faster\",template=\"row\"} 1"));
  CHECK_THAT(
      text,
      Contains("mtmc_template_candidates_total{outcome=\"faster\",template=\"pointwise\"} 1"));
}

TEST_CASE("A trial without a comparison counts by what went wrong", "[coordinator]") {
  metrics::Registry registry("test");
  SpeedupMetrics speedups(registry);
  v1::Candidate wrong = MakeCandidate(v1::Comparison::OUTCOME_FASTER, "");
  wrong.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_WRONG_RESULT);
  v1::Candidate rejected;
  rejected.set_state(v1::Candidate::STATE_REJECTED);

  speedups.CountCandidate(MakeJob("p", 2), wrong);
  speedups.CountCandidate(MakeJob("p", 2), rejected);

  const std::string text = registry.Render();
  CHECK_THAT(text, Contains("mtmc_template_candidates_total{outcome=\"wrong_result\","
                            "template=\"written\"} 1"));
  CHECK_THAT(text, Contains("outcome=\"rejected\"} 1"));
}

TEST_CASE("A job that ends shows speedup, distance from the roofline and cost", "[coordinator]") {
  metrics::Registry registry("test");
  SpeedupMetrics speedups(registry);
  v1::Job job = MakeJob("p", 2.5);
  job.mutable_budget_use()->mutable_device_time()->set_seconds(4);
  job.mutable_budget_use()->set_tokens(12);
  const v1::Candidate best = MakeCandidate(v1::Comparison::OUTCOME_FASTER, kSchedule);

  speedups.CountEnd(job, &best);

  const std::string text = registry.Render();
  const std::string labels = "{gpu_product=\"H100\",project=\"team\"";
  CHECK_THAT(text, Contains("mtmc_job_speedup_ratio_sum" + labels + "} 2.5"));
  CHECK_THAT(text, Contains("mtmc_job_speed_of_light_ratio_sum" + labels + "} 0.75"));
  CHECK_THAT(text, Contains("mtmc_job_device_seconds_sum" + labels + "} 4"));
  CHECK_THAT(text, Contains("mtmc_job_tokens_total" + labels + "} 12"));
  CHECK_THAT(text, Contains("mtmc_template_speedup_ratio_count{gpu_product=\"H100\","
                            "template=\"row\"} 1"));
  CHECK_THAT(text, Contains("mtmc_jobs_finished_total{gpu_product=\"H100\",outcome=\"succeeded\","
                            "project=\"team\",reason=\"trials\"} 1"));
  CHECK(text.find("secret") == text.npos);
}

TEST_CASE("A failed job has no speedup", "[coordinator]") {
  metrics::Registry registry("test");
  SpeedupMetrics speedups(registry);
  v1::Job job = MakeJob("p", 2.5);
  job.set_state(v1::Job::STATE_FAILED);

  speedups.CountEnd(job, nullptr);

  CHECK_THAT(registry.Render(), Contains("outcome=\"failed\""));
  CHECK(registry.Render().find("mtmc_job_speedup_ratio") == std::string::npos);
}

TEST_CASE("What a confirmation changed of a job's best shows when it ends", "[coordinator]") {
  metrics::Registry registry("test");
  SpeedupMetrics speedups(registry);
  const v1::Candidate candidate = MakeCandidate(v1::Comparison::OUTCOME_FASTER, kSchedule);
  v1::Job refuted = MakeJob("refuted", 3);
  speedups.CountCandidate(MakeJob("confirmed", 2), candidate);
  speedups.CountCandidate(refuted, candidate);

  speedups.CountEnd(MakeJob("confirmed", 2.5), &candidate);
  refuted.clear_best_speedup();
  refuted.set_state(v1::Job::STATE_FAILED);
  speedups.CountEnd(refuted, nullptr);

  const std::string text = registry.Render();
  CHECK_THAT(text, Contains("problem=\"confirmed\",project=\"team\"} 2.5"));
  CHECK_THAT(text, !Contains("problem=\"refuted\""));
}

TEST_CASE("Only the problems seen last are served", "[coordinator]") {
  metrics::Registry registry("test");
  SpeedupMetrics speedups(registry, 3);
  const v1::Candidate candidate = MakeCandidate(v1::Comparison::OUTCOME_FASTER, kSchedule);

  for (const char* problem : {"a", "b", "c", "a", "d"}) {
    speedups.CountCandidate(MakeJob(problem, 2), candidate);
  }

  const std::string text = registry.Render();
  const auto serves = [&](const std::string& problem) {
    return text.find(absl::StrCat("problem=\"", problem, "\"")) != text.npos;
  };
  CHECK(serves("a"));
  CHECK_FALSE(serves("b"));
  CHECK(serves("c"));
  CHECK(serves("d"));
}

TEST_CASE("Names that users give do not grow the labels without end", "[coordinator]") {
  metrics::Registry registry("test");
  SpeedupMetrics speedups(registry);
  const v1::Candidate candidate = MakeCandidate(v1::Comparison::OUTCOME_SAME, "");

  size_t half = 0;
  for (int i = 0; i < 4000; ++i) {
    v1::Job job = MakeJob(absl::StrCat("problem", i), 2);
    job.set_name(absl::StrCat("projects/p", i, "/jobs/j"));
    job.mutable_device()->set_product(absl::StrCat("gpu", i));
    speedups.CountCandidate(job, candidate);
    speedups.CountEnd(job, &candidate);
    if (i == 2000) half = registry.Render().size();
  }

  // Digits of larger numbers aside.
  CHECK(registry.Render().size() < half + half / 10);
}

}  // namespace
}  // namespace mtmc::coordinator
