// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/rpc/error.h"
#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

TEST_CASE("Coordinator goes on with the rules when the policy does not answer well",
          "[coordinator]") {
  World world;
  v1::ChooseActionResponse rubbish;
  rubbish.set_chosen(77);
  const std::vector<absl::StatusOr<v1::ChooseActionResponse>> answers = {
      absl::UnavailableError("down"), absl::DeadlineExceededError("slow"), rubbish};
  auto answer = GENERATE_REF(from_range(answers));
  world.policy.answer = [answer](const v1::ChooseActionRequest&) { return answer; };
  world.StartWithWorker();

  world.Create(world.Request());
  world.AwaitEnd();

  CHECK(world.HasNotice("the rules decide"));
  CHECK(world.Candidates()[1].decision().is_fallback());
  CHECK(world.Candidates()[1].decision().policy() == "rules");
  CHECK(world.registry.Render().find("mtmc_policy_fallback_total") != std::string::npos);
}

TEST_CASE("Coordinator asks a full coder no sooner than it says", "[coordinator]") {
  World world;
  // Far above the longest pause of its own.
  constexpr absl::Duration kAsked = absl::Milliseconds(400);
  world.coder.BreakNext(
      1, rpc::WithRetryDelay(
             rpc::MakeError(absl::StatusCode::kResourceExhausted, "OVERLOADED", "full"), kAsked));
  world.StartWithWorker();
  world.Create(world.Request());
  world.Await([&](const v1::Job&) { return world.coder.calls() >= 1; });
  const absl::Time refused = absl::Now();

  world.Await([&](const v1::Job&) { return world.coder.calls() >= 2; });

  // A moment passes before the first call is seen.
  CHECK(absl::Now() - refused > kAsked / 2);
  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
}

TEST_CASE("Coordinator fails a job whose coder is not there", "[coordinator]") {
  World world;
  world.coder.Break(rpc::MakeError(absl::StatusCode::kNotFound, "CODER_NOT_FOUND", "no coder llm"));
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_FAILED);
  CHECK(job.failure().reason() == "CODER_NOT_FOUND");
}

TEST_CASE("Coordinator fails a job whose coder is refused for good", "[coordinator]") {
  World world;
  world.coder.BreakSteps(rpc::MakeError(absl::StatusCode::kFailedPrecondition, "CODER_REFUSED",
                                        "the model's server answered 401"));
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_FAILED);
  CHECK(job.failure().reason() == "CODER_REFUSED");
  CHECK(job.budget_use().trials() == 1);
}

TEST_CASE("Coordinator keeps what was found before the coder was refused", "[coordinator]") {
  World world;
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request("greedy");
  request.mutable_job()->mutable_budget()->set_max_trials(200);
  std::atomic<int> measured = 0;
  const auto measure = world.worker.work;
  world.worker.work = [&](const v1::Lease& lease) {
    if (lease.has_evaluation() && ++measured == 5) {
      world.coder.BreakSteps(rpc::MakeError(absl::StatusCode::kFailedPrecondition, "CODER_REFUSED",
                                            "the key was revoked"));
    }
    return measure(lease);
  };

  world.Create(request);
  const v1::Job job = world.AwaitEnd();

  REQUIRE(job.best_candidate() != std::string(kJob) + "/candidates/c0");
  CHECK(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(job.failure().reason() == "CODER_REFUSED");
}

TEST_CASE("Coordinator ends a job by tokens when no step can be paid", "[coordinator]") {
  World world;
  world.coder.BreakSteps(rpc::MakeError(absl::StatusCode::kResourceExhausted,
                                        "TOKEN_BUDGET_EXHAUSTED", "no room for a program"));
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_TOKENS);
  CHECK(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(job.budget_use().trials() == 1);
}

TEST_CASE("Coordinator bills a call that failed", "[coordinator]") {
  World world;
  world.coder.BreakSteps(rpc::MakeError(absl::StatusCode::kFailedPrecondition, "CODER_REFUSED",
                                        "no credit", {{"tokens", "34"}}));
  world.StartWithWorker();

  world.Create(world.Request());

  CHECK(world.AwaitEnd().budget_use().tokens() == 34);
}

TEST_CASE("Coordinator cancels a job whose search gave up on the store", "[coordinator]") {
  World world;
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request("greedy");
  request.mutable_job()->mutable_budget()->set_max_trials(40);
  world.store.CrashAt(12, /*is_committed=*/false);
  world.Create(request);
  while (!world.store.is_dead()) world.Turn();
  // The search hears of it with its next write.
  for (int i = 0; i < 5; ++i) world.Turn();
  world.store.Revive();
  REQUIRE(world.memory.LookupJob(kJob)->state() == v1::Job::STATE_RUNNING);

  const auto cancelling = world.coordinator->CancelJob(kJob);

  REQUIRE(cancelling.ok());
  CHECK(cancelling->state() == v1::Job::STATE_CANCELLING);
  CHECK(world.AwaitEnd().state() == v1::Job::STATE_CANCELLED);
}

TEST_CASE("Coordinator rejects a candidate without a program and goes on", "[coordinator]") {
  World world;
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request("greedy");
  request.mutable_job()->mutable_budget()->set_max_trials(40);

  world.Create(request);
  world.AwaitEnd();

  bool has_rejected = false;
  for (const v1::Candidate& candidate : world.Candidates()) {
    if (candidate.state() != v1::Candidate::STATE_REJECTED) continue;
    has_rejected = true;
    CHECK(candidate.coder_failure() == "UNSUPPORTED: cannot reorder");
    CHECK(candidate.reward() < 0);
  }
  CHECK(has_rejected);
}

TEST_CASE("Coordinator fails a job whose problem cannot be served", "[coordinator]") {
  World world;
  world.worker.work = [](const v1::Lease&) {
    v1::LeaseResult result;
    result.mutable_problem_failure()->set_reason("PROBLEM_NOT_TRACEABLE");
    result.mutable_problem_failure()->set_line(12);
    return result;
  };
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_FAILED);
  CHECK(job.failure().reason() == "PROBLEM_NOT_TRACEABLE");
  CHECK(job.failure().line() == 12);
}

TEST_CASE("Coordinator fails a job without a correct candidate", "[coordinator]") {
  World world;
  const auto measure = world.worker.work;
  world.worker.work = [measure](const v1::Lease& lease) {
    v1::LeaseResult result = measure(lease);
    if (!result.has_evaluation()) return result;
    result.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_COMPILE);
    return result;
  };
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_FAILED);
  CHECK(job.failure().reason() == "NO_CORRECT_CANDIDATE");
}

}  // namespace
}  // namespace mtmc::coordinator
