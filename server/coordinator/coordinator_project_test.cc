// SPDX-License-Identifier: Apache-2.0
//
// What jobs of two projects have of each other's work.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

constexpr char kOther[] = "projects/q/jobs/job";

// The same job in project q.
v1::CreateJobRequest OtherRequest(World& world) {
  v1::CreateJobRequest request = world.Request();
  request.set_parent("projects/q");
  return request;
}

v1::Job AwaitOther(World& world) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    const auto job = world.memory.LookupJob(kOther);
    if (job.ok() && job->has_end_time()) return *job;
    world.Turn();
  }
  FAIL("the other job does not end");
  return {};
}

v1::Candidate StartOf(World& world, const std::string& job) {
  return *world.memory.LookupCandidate(job + "/candidates/c0");
}

TEST_CASE("Nothing that a project measured is used by another one", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  world.Create(OtherRequest(world));
  AwaitOther(world);

  const v1::Candidate first = StartOf(world, kJob);
  const v1::Candidate second = StartOf(world, kOther);

  CHECK(first.program().sha256() == second.program().sha256());
  CHECK_FALSE(second.evaluation().is_cached());
  CHECK(first.evaluation().fingerprint() != second.evaluation().fingerprint());
  const auto executions = world.worker.executions();
  CHECK(executions.at(kOther) == 1);
  CHECK(executions.at(std::string(kOther) + "/candidates/c0") == 1);
}

TEST_CASE("A project uses its own measurements again", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  v1::CreateJobRequest again = world.Request();
  again.set_job_id("again");
  again.clear_request_id();
  world.Create(again);
  const std::string job = "projects/p/jobs/again";
  const absl::Time deadline = absl::Now() + kPatience;
  while (!world.memory.LookupJob(job)->has_end_time() && absl::Now() < deadline) world.Turn();

  CHECK(StartOf(world, job).evaluation().is_cached());
  CHECK_FALSE(world.worker.executions().contains(job));
}

TEST_CASE("Work in flight is of one project", "[coordinator]") {
  World world;
  absl::Mutex mu;
  std::set<std::string> jobs;
  const auto are_both_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) { return jobs.size() == 2; };
  // The first to be offered something, by its name.
  FakeWorker second("workers/a");
  second.works_apart = true;
  // Both inspections are under way at once: neither waits for the other's answer.
  const auto work = [&](const v1::Lease& lease) {
    absl::MutexLock lock(&mu);
    if (lease.has_inspection()) {
      jobs.insert(lease.job());
      mu.AwaitWithTimeout(absl::Condition(&are_both_there), kPatience);
    }
    return FakeWork(lease);
  };
  world.worker.work = work;
  second.work = work;
  world.StartWithWorker();
  second.Attach(*world.coordinator);
  // Answered after the call of the second one, which a creation would overtake.
  CHECK(world.coordinator->ListWorkers()->size() == 2);

  world.Create(world.Request());
  world.Create(OtherRequest(world));

  CHECK(world.AwaitEnd().state() == v1::Job::STATE_SUCCEEDED);
  CHECK(AwaitOther(world).state() == v1::Job::STATE_SUCCEEDED);
  CHECK(jobs == std::set<std::string>{kJob, kOther});
}

TEST_CASE("Where projects share, one uses what another one measured", "[coordinator]") {
  World world;
  world.shares_across_projects = true;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  world.Create(OtherRequest(world));
  AwaitOther(world);

  const v1::Candidate start = StartOf(world, kOther);

  CHECK(start.evaluation().is_cached());
  CHECK(start.evaluation().fingerprint() == StartOf(world, kJob).evaluation().fingerprint());
  CHECK_FALSE(world.worker.executions().contains(kOther));
  CHECK(world.memory.LookupJob(kOther)->has_inspection());
}

}  // namespace
}  // namespace mtmc::coordinator
