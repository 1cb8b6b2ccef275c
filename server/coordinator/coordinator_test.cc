// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/coordinator.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/rpc/error.h"
#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

TEST_CASE("Coordinator brings a job from its source to a winner", "[coordinator]") {
  World world;
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(job.end_reason() == v1::Job::END_REASON_TRIALS);
  CHECK(job.budget_use().trials() == 6);
  CHECK(job.inspection().minimum_bytes() == 64);
  CHECK(job.best_speedup() > 1);
  CHECK(world.Candidates().size() == 7);
  CheckEvents(world);
}

TEST_CASE("Coordinator gives the same result for the same seed", "[coordinator]") {
  World first, second;
  for (World* world : {&first, &second}) {
    world->StartWithWorker();
    world->Create(world->Request());
    world->AwaitEnd();
  }

  CHECK(Essence(first) == Essence(second));
}

TEST_CASE("Coordinator runs every strategy", "[coordinator]") {
  const std::string strategy = GENERATE("greedy", "random");
  World world;
  world.StartWithWorker();

  world.Create(world.Request(strategy));

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
  CHECK(world.Candidates()[1].decision().policy() == strategy);
}

TEST_CASE("Coordinator never tries an action twice on one program", "[coordinator]") {
  World world;
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request("greedy");
  request.mutable_job()->mutable_budget()->set_max_trials(40);

  world.Create(request);
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_TRIALS);
  std::set<std::string> tried;
  for (const v1::Candidate& candidate : world.Candidates()) {
    if (candidate.trial() == 0) continue;
    CHECK(tried.insert(candidate.parents(0) + " " + candidate.action().text()).second);
  }
}

TEST_CASE("Coordinator returns the job of a repeated request", "[coordinator]") {
  World world;
  world.Start();

  const auto first = world.coordinator->CreateJob(world.Request());
  const auto second = world.coordinator->CreateJob(world.Request());
  v1::CreateJobRequest other = world.Request();
  other.clear_request_id();

  CHECK(first->job().uid() == second->job().uid());
  CHECK(rpc::ErrorReason(world.coordinator->CreateJob(other).status()) == "JOB_ALREADY_EXISTS");
}

TEST_CASE("Coordinator creates nothing to validate a job", "[coordinator]") {
  World world;
  world.Start();
  v1::CreateJobRequest request = world.Request();
  request.set_validate_only(true);

  const auto response = world.coordinator->CreateJob(request);

  CHECK(response->job().search().mtmc().policy() == "rules");
  CHECK(world.memory.ListJobs({})->jobs.empty());
  request.mutable_job()->mutable_problem()->mutable_source()->set_sha256(std::string(64, '0'));
  CHECK(rpc::ErrorReason(world.coordinator->CreateJob(request).status()) == "ARTIFACT_NOT_FOUND");
}

TEST_CASE("Coordinator answers a second job from the evaluation cache", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  const auto before = world.worker.executions();
  v1::CreateJobRequest again = world.Request();
  again.set_job_id("again");
  again.clear_request_id();

  world.Create(again);
  while (!world.memory.LookupJob("projects/p/jobs/again")->has_end_time()) world.Turn();

  CHECK(world.worker.executions() == before);
  const auto page = world.memory.ListCandidates({.job = "projects/p/jobs/again"});
  CHECK(page->candidates[0].evaluation().is_cached());
}

TEST_CASE("Coordinator tells the worker which speedup is to beat", "[coordinator]") {
  World world;
  std::vector<double> speedups;
  world.worker.work = [&, measure = world.worker.work](const v1::Lease& lease) {
    if (lease.has_evaluation()) speedups.push_back(lease.evaluation().speedup_to_beat());
    return measure(lease);
  };
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  REQUIRE(speedups.size() > 1);
  CHECK(speedups.front() == 0);
  CHECK(speedups[1] > 0);
  CHECK(std::is_sorted(speedups.begin(), speedups.end()));
  CHECK(speedups.back() <= job.best_speedup());
}

namespace {

// Makes the worker of `world` leave out what it is told to. What it is asked in full it passes on
// to `confirm`.
void DeferConfirmations(World& world, std::function<void(v1::Evaluation&)> confirm) {
  world.worker.work = [measure = world.worker.work, confirm](const v1::Lease& lease) {
    v1::LeaseResult result = measure(lease);
    if (!lease.has_evaluation() || result.evaluation().has_failure()) return result;
    if (lease.evaluation().defers_confirmation()) {
      result.mutable_evaluation()->set_skipped_confirmation(true);
    } else {
      confirm(*result.mutable_evaluation());
    }
    return result;
  };
}

}  // namespace

TEST_CASE("Coordinator confirms the best candidate once, at the end", "[coordinator]") {
  World world;
  int confirmations = 0;
  DeferConfirmations(world, [&](v1::Evaluation& evaluation) {
    ++confirmations;
    evaluation.mutable_checks()->set_is_thorough(true);
  });
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  REQUIRE(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(confirmations == 1);
  int thorough = 0;
  for (const v1::Candidate& candidate : world.Candidates()) {
    if (!candidate.evaluation().checks().is_thorough()) continue;
    ++thorough;
    CHECK(candidate.name() == job.best_candidate());
    // Nothing of what is decided by is lost.
    CHECK((candidate.trial() == 0 || candidate.decision().choices_size() > 0));
  }
  CHECK(thorough == 1);
}

TEST_CASE("Coordinator falls back on the next best where the best one is refuted",
          "[coordinator]") {
  World world;
  const int num_refuted = GENERATE(1, 2, 1000);
  int confirmations = 0;
  DeferConfirmations(world, [&](v1::Evaluation& evaluation) {
    if (++confirmations > num_refuted) return;
    evaluation.mutable_failure()->set_kind(v1::Failure::KIND_WRONG_RESULT);
    evaluation.mutable_failure()->set_message("wrong for winners");
    evaluation.set_verdict(v1::Evaluation::VERDICT_WRONG);
    evaluation.clear_measurement();
    evaluation.clear_comparisons();
  });
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  int num_wrong = 0;
  for (const v1::Candidate& candidate : world.Candidates()) {
    const bool is_refuted = candidate.evaluation().failure().message() == "wrong for winners";
    num_wrong += is_refuted ? 1 : 0;
    if (is_refuted) CHECK(candidate.name() != job.best_candidate());
  }
  CHECK(num_wrong == std::min(num_refuted, confirmations));
  if (num_refuted < 1000) {
    REQUIRE(job.state() == v1::Job::STATE_SUCCEEDED);
    CHECK(confirmations == num_refuted + 1);
  } else {
    CHECK(job.state() == v1::Job::STATE_FAILED);
    CHECK(job.failure().reason() == "NO_CORRECT_CANDIDATE");
    CHECK(job.best_candidate().empty());
  }
}

TEST_CASE("Coordinator calls a slow candidate off to confirm the best one in time",
          "[coordinator]") {
  World world;
  FakeWorker second("workers/second");
  second.works_apart = world.worker.works_apart = true;
  DeferConfirmations(world, [](v1::Evaluation&) {});
  absl::Notification has_ended;
  world.worker.work = second.work = [&, judge = world.worker.work](const v1::Lease& lease) {
    const bool is_start = lease.candidate().ends_with("/c0") || lease.candidate().empty();
    if (!is_start) has_ended.WaitForNotificationWithTimeout(kPatience);
    return judge(lease);
  };
  world.StartWithWorker();
  second.Attach(*world.coordinator);
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_budget()->mutable_max_wall_time()->set_seconds(3);

  world.Create(request);
  const v1::Job job = world.AwaitEnd();
  has_ended.Notify();

  CHECK(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(job.end_reason() == v1::Job::END_REASON_WALL_TIME);
  CHECK(job.best_candidate().ends_with("/c0"));
  CHECK_FALSE(world.Candidates()[0].evaluation().skipped_confirmation());
  world.Stop();
}

TEST_CASE("Coordinator takes no winner that is not confirmed when a job is cancelled",
          "[coordinator]") {
  World world;
  DeferConfirmations(world, [](v1::Evaluation&) {});
  world.worker.work = [&, judge = world.worker.work](const v1::Lease& lease) {
    // There is no program after the first.
    if (lease.has_evaluation()) world.coder.Hold();
    return judge(lease);
  };
  world.StartWithWorker();
  world.Create(world.Request());
  world.Await([](const v1::Job& job) { return !job.best_candidate().empty(); });

  REQUIRE(world.coordinator->CancelJob(kJob).ok());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_CANCELLED);
  CHECK(job.best_candidate().empty());
}

TEST_CASE("Coordinator streams every event once from a cursor", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  std::vector<int64_t> sequences;
  absl::Notification is_closed;

  world.feed.Watch(kJob, 5,
                   {.write =
                        [&](const v1::JobEvent& event) {
                          sequences.push_back(event.sequence());
                          return absl::OkStatus();
                        },
                    .close = [&](const absl::Status&) { is_closed.Notify(); }});
  is_closed.WaitForNotification();

  std::vector<int64_t> expected;
  for (const v1::JobEvent& event : world.Events()) {
    if (event.sequence() > 5) expected.push_back(event.sequence());
  }
  CHECK(sequences == expected);
}

TEST_CASE("Coordinator shows the graph in one event only", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();

  int graphs = 0;
  for (const v1::JobEvent& event : world.Events()) {
    if (event.job().has_inspection()) ++graphs;
  }

  CHECK(graphs == 1);
}

// Series of the fleet and of jobs that are not 0.
int CountShown(World& world) {
  int shown = 0;
  for (const absl::string_view line : absl::StrSplit(world.registry.Render(), '\n')) {
    const bool is_gauge = absl::StartsWith(line, "mtmc_workers{") ||
                          absl::StartsWith(line, "mtmc_jobs{") ||
                          absl::StartsWith(line, "mtmc_problem_best_speedup_ratio{");
    if (is_gauge && !absl::EndsWith(line, " 0")) ++shown;
  }
  return shown;
}

TEST_CASE("A coordinator that stops shows nothing of what is another's from now on",
          "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  // The fleet is shown once a second.
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (CountShown(world) < 2 && absl::Now() < deadline) world.Turn();
  REQUIRE(CountShown(world) >= 2);

  world.Stop();

  CHECK(CountShown(world) == 0);
}

}  // namespace
}  // namespace mtmc::coordinator
