// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/coordinator_fixture.h"

#include <catch2/catch.hpp>
#include <set>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/testing/status_matchers.h"

namespace mtmc::coordinator {

using testing::IsOk;

World::~World() { Stop(); }

void World::Start() {
  auto created = Coordinator::Create(
      {.leases = {.hold = absl::Milliseconds(50), .patience = patience},
       .search = {.min_backoff = absl::Milliseconds(1),
                  .max_backoff = absl::Milliseconds(5),
                  .device_poll = absl::Milliseconds(1),
                  .quota_slice = quota_slice,
                  .shares_across_projects = shares_across_projects},
       .tick = absl::Milliseconds(2),
       .retention = {.jobs = retention, .logs = log_retention, .artifacts = artifact_retention}},
      {.store = store,
       .artifacts = *artifacts,
       .coder = coder,
       .policy = policy,
       .clock = *clock,
       .metrics = metrics,
       .feed = feed});
  REQUIRE_THAT(created.status(), IsOk());
  coordinator = *std::move(created);
}

void World::StartWithWorker() {
  Start();
  worker.Attach(*coordinator);
}

void World::Stop() {
  if (coordinator == nullptr) return;
  coordinator->Stop();
  feed.Close();
  // Readers of the feed end before it does.
  absl::Notification is_idle;
  REQUIRE_THAT(executor.Submit([&] { is_idle.Notify(); }), IsOk());
  is_idle.WaitForNotification();
  coordinator.reset();
}

v1::CreateJobRequest World::Request(const std::string& strategy) {
  v1::CreateJobRequest request;
  request.set_parent("projects/p");
  request.set_job_id("job");
  request.set_request_id(kRequestId);
  v1::Job& job = *request.mutable_job();
  *job.mutable_problem()->mutable_source() = *artifacts->Put("class Model: pass");
  if (strategy == "greedy") {
    job.mutable_search()->mutable_greedy();
  } else if (strategy == "random") {
    job.mutable_search()->mutable_random()->set_max_steps(3);
  } else {
    job.mutable_search()->mutable_mtmc()->set_max_steps(3);
  }
  job.mutable_budget()->set_max_trials(6);
  return request;
}

void World::Create(const v1::CreateJobRequest& request) {
  REQUIRE_THAT(coordinator->CreateJob(request).status(), IsOk());
}

void World::Await(const std::function<bool(const v1::Job&)>& condition) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    const auto job = memory.LookupJob(kJob);
    if (job.ok() && condition(*job)) return;
    Turn();
  }
  FAIL("waited in vain; the job is " << memory.LookupJob(kJob)->DebugString());
}

void World::Turn() {
  absl::Mutex mu;
  absl::CondVar never;
  absl::MutexLock lock(&mu);
  never.WaitWithTimeout(&mu, absl::Milliseconds(1));
}

v1::Job World::AwaitEnd() {
  Await([](const v1::Job& job) { return job.has_end_time(); });
  return *memory.LookupJob(kJob);
}

std::vector<v1::Candidate> World::Candidates() {
  return memory.ListCandidates({.job = kJob, .page_size = 500})->candidates;
}

std::vector<v1::JobEvent> World::Events() { return *memory.ReadEvents(kJob, 0, 10'000); }

bool World::HasNotice(const std::string& part) {
  for (const v1::JobEvent& event : Events()) {
    if (event.notice().find(part) != std::string::npos) return true;
  }
  return false;
}

std::string Essence(World& world) {
  std::string text;
  v1::Job job = *world.memory.LookupJob(kJob);
  text += v1::Job::State_Name(job.state()) + " " + v1::Job::EndReason_Name(job.end_reason()) + " " +
          job.best_candidate() + " " + std::to_string(job.best_speedup()) + " " +
          std::to_string(job.budget_use().trials()) + "\n";
  for (v1::Candidate candidate : world.Candidates()) {
    candidate.clear_create_time();
    candidate.clear_end_time();
    text += candidate.ShortDebugString() + "\n";
  }
  return text;
}

void CheckEvents(World& world) {
  int64_t expected = 0;
  std::set<std::string> finished;
  for (const v1::JobEvent& event : world.Events()) {
    CHECK(event.sequence() == ++expected);
    const auto state = event.candidate().state();
    if (state == v1::Candidate::STATE_EVALUATED || state == v1::Candidate::STATE_REJECTED) {
      CHECK(finished.insert(event.candidate().name()).second);
    }
  }
}

}  // namespace mtmc::coordinator
