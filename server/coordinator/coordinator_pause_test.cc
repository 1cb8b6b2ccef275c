// SPDX-License-Identifier: Apache-2.0
//
// Jobs that are paused and go on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "absl/synchronization/notification.h"
#include "common/config/version.h"
#include "common/rpc/error.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;

v1::Job::State Pause(World& world) {
  const auto job = world.coordinator->PauseJob(kJob);
  REQUIRE_THAT(job.status(), IsOk());
  return job->state();
}

v1::Job::State Resume(World& world) {
  const auto job = world.coordinator->ResumeJob(kJob);
  REQUIRE_THAT(job.status(), IsOk());
  return job->state();
}

// With an hour of wall time.
void CreateForAnHour(World& world) {
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_budget()->mutable_max_wall_time()->set_seconds(3600);
  world.Create(request);
}

// Events that show the job in that state.
int64_t CountEvents(World& world, v1::Job::State state) {
  const auto events = world.Events();
  return std::count_if(events.begin(), events.end(),
                       [state](const auto& event) { return event.job().state() == state; });
}

// A worker that calls when the test says so.
class HandWorker {
 public:
  explicit HandWorker(World& world) : world_(world) {}

  // The lease that an idle worker is answered with; without an id there is none.
  v1::Lease Idle() {
    v1::SynchronizeRequest request;
    request.mutable_idle();
    return Call(request).lease();
  }

  v1::Lease AwaitLease() {
    v1::Lease lease = Idle();
    while (lease.id().empty()) lease = Idle();
    return lease;
  }

  void Complete(const v1::Lease& lease) {
    v1::SynchronizeRequest request;
    request.mutable_completed()->set_lease_id(lease.id());
    *request.mutable_completed()->mutable_result() = FakeWork(lease);
    Call(request);
  }

 private:
  v1::SynchronizeResponse Call(v1::SynchronizeRequest request) {
    request.set_instance_id("hand");
    v1::Worker& worker = *request.mutable_worker();
    worker.set_name("workers/hand");
    worker.set_version(std::string(config::Version()));
    worker.mutable_device()->set_product("cpu");
    worker.mutable_device()->add_dialects(v1::DIALECT_OPENCL);
    worker.set_isolation_level(v1::ISOLATION_RESTRICTED);
    absl::Notification is_answered;
    v1::SynchronizeResponse response;
    world_.coordinator->Synchronize(request, /*identity=*/"",
                                    [&](absl::StatusOr<v1::SynchronizeResponse> answer) {
                                      if (answer.ok()) response = *answer;
                                      is_answered.Notify();
                                    });
    is_answered.WaitForNotification();
    return response;
  }

  World& world_;
};

bool IsJudged(World& world, int trial) {
  const auto candidates = world.Candidates();
  return std::any_of(candidates.begin(), candidates.end(), [trial](const v1::Candidate& each) {
    return each.trial() == trial && each.state() == v1::Candidate::STATE_EVALUATED;
  });
}

}  // namespace

TEST_CASE("Coordinator comes to the same result however often a job was paused", "[coordinator]") {
  World calm;
  calm.StartWithWorker();
  calm.Create(calm.Request());
  calm.AwaitEnd();
  World world;
  world.StartWithWorker();
  world.Create(world.Request());

  for (int i = 0; i < 200; ++i) {
    Pause(world);
    if (i % 3 == 0) world.Turn();
    Resume(world);
    if (i % 2 == 0) world.Turn();
  }
  world.AwaitEnd();

  CHECK(Essence(world) == Essence(calm));
  CheckEvents(world);
  for (const auto& [name, count] : world.worker.executions()) {
    INFO(name);
    CHECK(count == 1);
  }
}

TEST_CASE("Coordinator pauses a job before its search has begun", "[coordinator]") {
  World world;
  world.Start();
  world.Create(world.Request());

  CHECK(Pause(world) == v1::Job::STATE_PAUSED);
  world.worker.Attach(*world.coordinator);
  for (int i = 0; i < 20; ++i) world.Turn();
  CHECK(world.memory.LookupJob(kJob)->state() == v1::Job::STATE_PAUSED);
  CHECK_FALSE(world.memory.LookupJob(kJob)->has_start_time());
  CHECK(Resume(world) == v1::Job::STATE_PENDING);

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
}

TEST_CASE("Coordinator pauses and resumes once what is paused and resumed twice", "[coordinator]") {
  World world;
  world.Start();
  world.Create(world.Request());

  CHECK(Pause(world) == v1::Job::STATE_PAUSED);
  CHECK(Pause(world) == v1::Job::STATE_PAUSED);
  CHECK(CountEvents(world, v1::Job::STATE_PAUSED) == 1);
  CHECK(Resume(world) == v1::Job::STATE_PENDING);
  CHECK(Resume(world) == v1::Job::STATE_PENDING);
  // As created, and as resumed.
  CHECK(CountEvents(world, v1::Job::STATE_PENDING) == 2);

  world.worker.Attach(*world.coordinator);
  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
}

TEST_CASE("Coordinator pauses and resumes no job that has ended", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  const auto events = world.Events().size();

  CHECK(Pause(world) == v1::Job::STATE_SUCCEEDED);
  CHECK(Resume(world) == v1::Job::STATE_SUCCEEDED);

  CHECK(world.Events().size() == events);
  CHECK(rpc::ErrorReason(world.coordinator->PauseJob("projects/p/jobs/none").status()) ==
        "JOB_NOT_FOUND");
}

TEST_CASE("Coordinator does not pause a job whose last record waits for the store",
          "[coordinator]") {
  World calm;
  calm.StartWithWorker();
  calm.Create(calm.Request());
  calm.AwaitEnd();
  World world;
  world.StartWithWorker();
  world.store.FillAt(calm.store.commits());
  world.Create(world.Request());
  while (!world.store.is_full()) world.Turn();
  CHECK_FALSE(world.memory.LookupJob(kJob)->has_end_time());
  world.store.Revive();

  const auto paused = world.coordinator->PauseJob(kJob);

  // It may be there by now.
  if (!paused.ok()) CHECK(rpc::ErrorReason(paused.status()) == "JOB_CANCELLING");
  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
}

TEST_CASE("Coordinator does not pause a job that is being cancelled", "[coordinator]") {
  World world;
  world.Start();
  world.Create(world.Request());
  REQUIRE_THAT(world.coordinator->CancelJob(kJob).status(), IsOk());

  const auto paused = world.coordinator->PauseJob(kJob);

  // It may have ended already.
  if (!paused.ok()) CHECK(rpc::ErrorReason(paused.status()) == "JOB_CANCELLING");
  CHECK(world.AwaitEnd().state() == v1::Job::STATE_CANCELLED);
}

TEST_CASE("Coordinator cancels a job that is paused", "[coordinator]") {
  World world;
  world.Start();
  world.Create(world.Request());
  Pause(world);

  const auto job = world.coordinator->CancelJob(kJob);

  REQUIRE_THAT(job.status(), IsOk());
  CHECK(job->state() == v1::Job::STATE_CANCELLING);
  CHECK(world.AwaitEnd().state() == v1::Job::STATE_CANCELLED);
  CHECK(world.AwaitEnd().end_reason() == v1::Job::END_REASON_CANCELLED);
}

TEST_CASE("Coordinator keeps the program that was being written when a job was paused",
          "[coordinator]") {
  World world;
  world.coder.Hold();
  world.StartWithWorker();
  world.Create(world.Request("greedy"));
  while (!world.coder.is_held()) world.Turn();

  CHECK(Pause(world) == v1::Job::STATE_PAUSED);
  world.coder.Release();
  while (world.Candidates().size() < 2 || !world.Candidates()[1].has_program()) world.Turn();
  const int calls = world.coder.calls();
  for (int i = 0; i < 20; ++i) world.Turn();

  CHECK(world.memory.LookupJob(kJob)->state() == v1::Job::STATE_PAUSED);
  CHECK(world.Candidates().at(1).state() == v1::Candidate::STATE_PENDING);
  CHECK(world.coder.calls() == calls);
  CHECK(Resume(world) == v1::Job::STATE_RUNNING);
  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
  CheckEvents(world);
}

TEST_CASE("Coordinator goes on with a call that a job was paused and resumed during",
          "[coordinator]") {
  World world;
  world.coder.Hold();
  world.StartWithWorker();
  world.Create(world.Request("greedy"));
  while (!world.coder.is_held()) world.Turn();
  const int calls = world.coder.calls();

  Pause(world);
  CHECK(Resume(world) == v1::Job::STATE_RUNNING);
  CHECK(world.coder.calls() == calls);
  world.coder.Release();

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
}

TEST_CASE("Coordinator keeps the evaluation that ran when a job was paused", "[coordinator]") {
  World world;
  world.Start();
  HandWorker worker(world);
  world.Create(world.Request());
  worker.Complete(worker.AwaitLease());
  const v1::Lease lease = worker.AwaitLease();
  REQUIRE(lease.has_evaluation());

  CHECK(Pause(world) == v1::Job::STATE_PAUSED);
  worker.Complete(lease);
  while (!IsJudged(world, 0)) world.Turn();

  const v1::Job job = *world.memory.LookupJob(kJob);
  CHECK(job.state() == v1::Job::STATE_PAUSED);
  CHECK(job.has_best_speedup());
  // Nothing follows.
  CHECK(worker.Idle().id().empty());
  CHECK(world.Candidates().size() == 1);
}

TEST_CASE("Coordinator keeps an evaluation whose lost worker reports while its job is paused",
          "[coordinator]") {
  testing::FakeClock clock;
  World world;
  world.clock = &clock;
  world.Start();
  HandWorker worker(world);
  world.Create(world.Request());
  worker.Complete(worker.AwaitLease());
  const v1::Lease lease = worker.AwaitLease();
  REQUIRE(lease.has_evaluation());
  clock.Advance(absl::Minutes(1));
  while (!world.memory.ReadFleet()->leases.at(0).is_lost) world.Turn();

  Pause(world);
  worker.Complete(lease);
  REQUIRE(world.memory.FindEvaluation(lease.evaluation().fingerprint())->has_value());
  Resume(world);

  world.Await([](const v1::Job& job) { return job.has_best_speedup(); });
  CHECK_FALSE(world.Candidates().at(0).evaluation().is_cached());
}

TEST_CASE("Coordinator grants nothing for a job that is paused", "[coordinator]") {
  World world;
  world.Start();
  HandWorker worker(world);
  world.Create(world.Request());
  worker.Complete(worker.AwaitLease());

  CHECK(Pause(world) == v1::Job::STATE_PAUSED);
  CHECK(worker.Idle().id().empty());
  CHECK(Resume(world) == v1::Job::STATE_RUNNING);

  CHECK(worker.AwaitLease().has_evaluation());
}

TEST_CASE("Coordinator counts no wall time while a job is paused", "[coordinator]") {
  testing::FakeClock clock;
  World world;
  world.clock = &clock;
  world.Start();
  HandWorker worker(world);
  CreateForAnHour(world);
  // Held until there is work: the clock does not move.
  const v1::Lease lease = worker.AwaitLease();
  clock.Advance(absl::Seconds(10));

  Pause(world);
  CHECK(world.memory.LookupJob(kJob)->budget_use().wall_time().seconds() == 10);
  worker.Complete(lease);
  while (!world.memory.LookupJob(kJob)->has_inspection()) world.Turn();
  clock.Advance(absl::Hours(1));
  // Another coordinator would read the same.
  world.Stop();
  world.StartWithWorker();
  for (int i = 0; i < 20; ++i) world.Turn();
  CHECK(world.memory.LookupJob(kJob)->state() == v1::Job::STATE_PAUSED);
  clock.Advance(absl::Hours(1));
  CHECK(Resume(world) == v1::Job::STATE_RUNNING);
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_TRIALS);
  CHECK(job.budget_use().wall_time().seconds() == 10);
}

TEST_CASE("Coordinator takes the time before a pause off the limit after it", "[coordinator]") {
  testing::FakeClock clock;
  World world;
  world.clock = &clock;
  world.Start();
  HandWorker worker(world);
  CreateForAnHour(world);
  worker.Complete(worker.AwaitLease());
  clock.Advance(absl::Seconds(3600));

  Pause(world);
  clock.Advance(absl::Hours(1));
  for (int i = 0; i < 20; ++i) world.Turn();
  CHECK(world.memory.LookupJob(kJob)->state() == v1::Job::STATE_PAUSED);
  Resume(world);

  CHECK(world.AwaitEnd().end_reason() == v1::Job::END_REASON_WALL_TIME);
}

TEST_CASE("Coordinator counts no wall time for a clock that is ahead of the last one's",
          "[coordinator]") {
  testing::FakeClock clock;
  World world;
  world.clock = &clock;
  world.Start();
  HandWorker worker(world);
  CreateForAnHour(world);
  const v1::Lease lease = worker.AwaitLease();
  clock.Advance(absl::Seconds(10));
  worker.Complete(lease);
  while (world.Candidates().empty()) world.Turn();

  world.Stop();
  clock.Set(clock.Now() + absl::Hours(2));
  world.StartWithWorker();
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_TRIALS);
  CHECK(job.budget_use().wall_time().seconds() == 10);
}

}  // namespace mtmc::coordinator
