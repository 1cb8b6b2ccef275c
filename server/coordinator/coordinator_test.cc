// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/coordinator.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
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

}  // namespace
}  // namespace mtmc::coordinator
