// SPDX-License-Identifier: Apache-2.0
#include "server/search/job_options.h"

#include <catch2/catch.hpp>
#include <limits>
#include <set>
#include <string>

#include "absl/strings/cord.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "google/rpc/error_details.pb.h"

namespace mtmc::search {
namespace {

using testing::IsOk;

v1::Job MakeJob() {
  v1::Job job;
  job.mutable_problem()->mutable_source()->set_sha256(std::string(64, 'a'));
  job.mutable_problem()->mutable_source()->set_size_bytes(1);
  return job;
}

std::set<std::string> Violations(const v1::Job& job) {
  const absl::Status status = ResolveJob(job).status();
  CHECK(rpc::ErrorReason(status) == "INVALID_JOB");
  google::rpc::BadRequest details;
  const auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  REQUIRE(payload);
  REQUIRE(details.ParseFromString(std::string(*payload)));
  std::set<std::string> fields;
  for (const auto& violation : details.field_violations()) fields.insert(violation.field());
  return fields;
}

}  // namespace

TEST_CASE("ResolveJob writes every default into the job", "[search]") {
  const auto job = ResolveJob(MakeJob());

  REQUIRE_THAT(job.status(), IsOk());
  REQUIRE(job->search().has_mtmc());
  CHECK(job->search().mtmc().policy() == "rules");
  CHECK(job->search().mtmc().max_steps() == 8);
  CHECK(job->search().allow_library());
  CHECK(job->budget().max_trials() == 16);
  CHECK(job->budget().max_wall_time().seconds() == 3600);
  CHECK(job->problem().precision() == v1::PRECISION_KERNELBENCH);
  CHECK(job->evaluation().baselines(0) == v1::BASELINE_EAGER);
  CHECK(job->evaluation().max_variants() == 64);
}

TEST_CASE("ResolveJob leaves the number of samples to who takes them", "[search]") {
  CHECK(ResolveJob(MakeJob())->evaluation().min_samples() == 0);
}

TEST_CASE("ResolveJob keeps the program that the user has written", "[search]") {
  v1::Job job = MakeJob();
  job.mutable_search()->mutable_evaluate();
  job.mutable_start_program()->set_sha256(std::string(64, 'b'));

  const auto resolved = ResolveJob(job);

  REQUIRE_THAT(resolved.status(), IsOk());
  CHECK(resolved->start_program().sha256() == job.start_program().sha256());
}

TEST_CASE("ResolveJob refuses to evaluate no program, or one that is no digest", "[search]") {
  v1::Job job = MakeJob();
  job.mutable_search()->mutable_evaluate();

  CHECK(Violations(job) == std::set<std::string>{"job.start_program"});

  job.mutable_start_program()->set_sha256("beef");

  CHECK(Violations(job) == std::set<std::string>{"job.start_program"});
}

TEST_CASE("ResolveJob adds the baseline of like precision", "[search]") {
  v1::Job job = MakeJob();
  job.mutable_problem()->set_precision(v1::PRECISION_TF32);
  v1::Job half = MakeJob();
  half.mutable_problem()->set_precision(v1::PRECISION_HALF);
  half.mutable_evaluation()->add_baselines(v1::BASELINE_EAGER_AUTOCAST);

  const auto resolved = ResolveJob(job);
  const auto resolved_half = ResolveJob(half);

  REQUIRE_THAT(resolved.status(), IsOk());
  REQUIRE(resolved->evaluation().baselines_size() == 2);
  CHECK(resolved->evaluation().baselines(1) == v1::BASELINE_EAGER_TF32);
  REQUIRE_THAT(resolved_half.status(), IsOk());
  CHECK(resolved_half->evaluation().baselines_size() == 1);
}

TEST_CASE("ResolveJob keeps what was asked for", "[search]") {
  v1::Job job = MakeJob();
  job.mutable_search()->set_allow_library(false);
  job.mutable_search()->mutable_mtmc()->set_temperature(0.5);
  job.set_dialect(v1::DIALECT_CUDA);

  const auto resolved = ResolveJob(job);

  REQUIRE_THAT(resolved.status(), IsOk());
  CHECK_FALSE(resolved->search().allow_library());
  CHECK(resolved->search().mtmc().temperature() == 0.5);
  CHECK(resolved->dialect() == v1::DIALECT_CUDA);
}

TEST_CASE("ResolveJob names every field that is wrong at once", "[search]") {
  v1::Job job;
  v1::MtmcStrategy& mtmc = *job.mutable_search()->mutable_mtmc();
  mtmc.set_policy("best");
  mtmc.set_temperature(std::numeric_limits<double>::quiet_NaN());
  job.mutable_budget()->set_max_trials(-1);
  job.mutable_budget()->mutable_max_wall_time()->set_seconds(-5);
  job.mutable_evaluation()->add_baselines(v1::BASELINE_UNSPECIFIED);
  job.mutable_evaluation()->mutable_build_timeout();

  const std::set<std::string> fields = Violations(job);

  CHECK(fields == std::set<std::string>{"job.problem.source", "job.problem.source.size_bytes",
                                        "job.search.mtmc.policy", "job.search.mtmc.temperature",
                                        "job.budget.max_trials", "job.budget.max_wall_time",
                                        "job.evaluation.baselines",
                                        "job.evaluation.build_timeout"});
}

TEST_CASE("ResolveJob drops what only the server may set", "[search]") {
  v1::Job job = MakeJob();
  job.set_state(v1::Job::STATE_SUCCEEDED);
  job.set_best_candidate("mine");

  const auto resolved = ResolveJob(job);

  CHECK(resolved->state() == v1::Job::STATE_UNSPECIFIED);
  CHECK(resolved->best_candidate().empty());
}

}  // namespace mtmc::search
