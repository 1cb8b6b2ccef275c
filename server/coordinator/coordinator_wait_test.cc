// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

TEST_CASE("Coordinator lets a job wait for a worker and says so", "[coordinator]") {
  World world;
  world.Start();
  world.Create(world.Request());
  world.Await([&](const v1::Job&) {
    return world.HasNotice("waits for a worker: no worker is connected");
  });
  CHECK(world.memory.LookupJob(kJob)->state() == v1::Job::STATE_PENDING);

  world.worker.Attach(*world.coordinator);

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
}

TEST_CASE("Coordinator says which isolation a job waits for", "[coordinator]") {
  World world;
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_evaluation()->set_min_isolation(v1::ISOLATION_CONFINED);
  world.Create(request);
  world.Await([&](const v1::Job&) { return world.HasNotice("no worker with isolation confined"); });

  CHECK(world.memory.LookupJob(kJob)->state() == v1::Job::STATE_PENDING);
  CHECK(world.worker.executions().empty());
  CHECK(world.HasNotice("workers have restricted; see mtmc doctor"));
}

TEST_CASE("Coordinator says why a job waits that has lost its worker", "[coordinator]") {
  World world;
  world.patience = absl::Milliseconds(5);
  world.worker.isolation = v1::ISOLATION_CONFINED;
  world.worker.work = [&world](const v1::Lease& lease) {
    // From its next call on.
    world.worker.isolation = v1::ISOLATION_PROCESS;
    return FakeWork(lease);
  };
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_evaluation()->set_min_isolation(v1::ISOLATION_CONFINED);

  world.Create(request);
  world.Await([&](const v1::Job&) { return world.HasNotice("workers have process"); });
  const v1::Job job = *world.memory.LookupJob(kJob);
  world.Stop();

  CHECK(job.state() == v1::Job::STATE_RUNNING);
  CHECK(world.worker.executions() == std::map<std::string, int>{{kJob, 1}});
}

TEST_CASE("Coordinator asks for a job's least isolation with every lease", "[coordinator]") {
  World world;
  std::set<std::string> asked;
  world.worker.isolation = v1::ISOLATION_CONFINED;
  world.worker.work = [&asked](const v1::Lease& lease) {
    asked.insert(v1::Isolation_Name(lease.has_inspection()
                                        ? lease.inspection().min_isolation()
                                        : lease.evaluation().options().min_isolation()));
    return FakeWork(lease);
  };
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_evaluation()->set_min_isolation(v1::ISOLATION_CONFINED);

  world.Create(request);
  const v1::Job job = world.AwaitEnd();
  world.Stop();

  CHECK(job.state() == v1::Job::STATE_SUCCEEDED);
  CHECK(asked == std::set<std::string>{"ISOLATION_CONFINED"});
}

TEST_CASE("Coordinator waits for a gateway that is down and resumes by itself", "[coordinator]") {
  World world;
  world.coder.Break(absl::UnavailableError("connection refused"));
  world.StartWithWorker();
  world.Create(world.Request());
  world.Await([&](const v1::Job&) { return world.HasNotice("the gateway does not answer"); });

  world.coder.Break(absl::OkStatus());

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
  CHECK(world.HasNotice("the gateway answers again"));
}

TEST_CASE("Coordinator asks a gateway again that lost an answer", "[coordinator]") {
  World world;
  world.coder.BreakNext(2, absl::DeadlineExceededError("Deadline Exceeded"));
  world.StartWithWorker();

  world.Create(world.Request());

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
  CHECK(world.HasNotice("the gateway does not answer"));
  CHECK(world.HasNotice("the gateway answers again"));
}

TEST_CASE("Coordinator asks a gateway three times that hangs on a request", "[coordinator]") {
  World world;
  world.coder.Break(absl::DeadlineExceededError("Deadline Exceeded"));
  world.StartWithWorker();

  world.Create(world.Request());
  const v1::Job job = world.AwaitEnd();

  CHECK(job.state() == v1::Job::STATE_FAILED);
  CHECK(job.failure().reason() == "START_PROGRAM_FAILED");
  CHECK(world.coder.calls() == 3);
}

TEST_CASE("Coordinator cancels a job that waits", "[coordinator]") {
  World world;
  world.Start();
  world.Create(world.Request());

  const auto cancelling = world.coordinator->CancelJob(kJob);
  const v1::Job job = world.AwaitEnd();

  CHECK(cancelling->state() == v1::Job::STATE_CANCELLING);
  CHECK(job.state() == v1::Job::STATE_CANCELLED);
  CHECK(job.end_reason() == v1::Job::END_REASON_CANCELLED);
  CHECK(world.coordinator->CancelJob(kJob)->state() == v1::Job::STATE_CANCELLED);
}

TEST_CASE("Coordinator cancels a job while its gateway is down and over a restart",
          "[coordinator]") {
  World world;
  world.coder.Break(absl::UnavailableError("down"));
  world.StartWithWorker();
  world.Create(world.Request());
  world.Await([&](const v1::Job&) { return world.HasNotice("the gateway does not answer"); });
  // Dies right after it has recorded that the job is to end.
  world.store.CrashAt(1, /*is_committed=*/true);
  world.coordinator->CancelJob(kJob).status().IgnoreError();  // It has died.
  world.Stop();
  world.store.Revive();

  world.StartWithWorker();

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_CANCELLED);
  CHECK(world.Candidates()[0].state() == v1::Candidate::STATE_CANCELLED);
}

TEST_CASE("Coordinator ends a job at its wall time", "[coordinator]") {
  World world;
  world.coder.Break(absl::UnavailableError("down"));
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_budget()->mutable_max_wall_time()->set_nanos(30'000'000);

  world.Create(request);
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_WALL_TIME);
  CHECK(job.state() == v1::Job::STATE_FAILED);
}

}  // namespace
}  // namespace mtmc::coordinator
