// SPDX-License-Identifier: Apache-2.0
//
// Jobs that are deleted, by a call or because they have been kept long enough.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/rpc/error.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;

// What ends a watch of the job from `cursor` on.
absl::Status Watch(World& world, int64_t cursor) {
  absl::Notification is_closed;
  absl::Status end;
  world.feed.Watch(kJob, cursor,
                   {.write = [](const v1::JobEvent&) { return absl::OkStatus(); },
                    .close =
                        [&](const absl::Status& status) {
                          end = status;
                          is_closed.Notify();
                        }});
  is_closed.WaitForNotification();
  return end;
}

}  // namespace

TEST_CASE("Coordinator deletes a job that has ended", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();

  CHECK_THAT(world.coordinator->DeleteJob(kJob), IsOk());

  CHECK(rpc::ErrorReason(world.memory.LookupJob(kJob).status()) == "JOB_NOT_FOUND");
  CHECK(rpc::ErrorReason(world.coordinator->DeleteJob(kJob)) == "JOB_NOT_FOUND");
  CHECK(rpc::ErrorReason(world.coordinator->CancelJob(kJob).status()) == "JOB_NOT_FOUND");
  CHECK(rpc::ErrorReason(Watch(world, 0)) == "JOB_NOT_FOUND");
  CHECK(rpc::ErrorReason(Watch(world, 3)) == "JOB_NOT_FOUND");
}

TEST_CASE("Coordinator deletes no job that goes on", "[coordinator]") {
  World world;
  world.Start();
  world.Create(world.Request());

  CHECK(rpc::ErrorReason(world.coordinator->DeleteJob(kJob)) == "JOB_NOT_ENDED");
  REQUIRE_THAT(world.coordinator->PauseJob(kJob).status(), IsOk());
  CHECK(rpc::ErrorReason(world.coordinator->DeleteJob(kJob)) == "JOB_NOT_ENDED");

  CHECK_THAT(world.memory.LookupJob(kJob).status(), IsOk());
}

TEST_CASE("Coordinator makes a deleted job anew from the same request", "[coordinator]") {
  World world;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  const std::string essence = Essence(world);
  REQUIRE_THAT(world.coordinator->DeleteJob(kJob), IsOk());

  world.Create(world.Request());
  world.AwaitEnd();

  CHECK(Essence(world) == essence);
  // Nothing was left to answer from.
  for (const auto& [name, count] : world.worker.executions()) {
    INFO(name);
    CHECK(count == 2);
  }
}

TEST_CASE("Coordinator forgets jobs that have been kept long enough", "[coordinator]") {
  testing::FakeClock clock;
  World world;
  world.clock = &clock;
  world.retention = absl::Hours(24);
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();

  // Within the retention, the sweep finds it and leaves it.
  clock.Advance(absl::Hours(23));
  for (int i = 0; i < 20; ++i) world.Turn();
  CHECK_THAT(world.memory.LookupJob(kJob).status(), IsOk());

  clock.Advance(absl::Hours(1));
  while (world.memory.LookupJob(kJob).ok()) world.Turn();
  CHECK(rpc::ErrorReason(world.memory.LookupJob(kJob).status()) == "JOB_NOT_FOUND");
}

TEST_CASE("Coordinator forgets jobs behind one that it cannot delete", "[coordinator]") {
  constexpr char kOther[] = "projects/p/jobs/other";
  testing::FakeClock clock;
  World world;
  world.clock = &clock;
  world.retention = absl::Hours(24);
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  world.store.KeepJob(kJob);
  clock.Advance(absl::Minutes(1));
  v1::CreateJobRequest request = world.Request();
  request.set_job_id("other");
  request.set_request_id("");
  world.Create(request);
  while (!world.memory.LookupJob(kOther)->has_end_time()) world.Turn();

  clock.Advance(absl::Hours(25));
  const absl::Time deadline = absl::Now() + kPatience;
  while (world.memory.LookupJob(kOther).ok() && absl::Now() < deadline) world.Turn();

  CHECK(rpc::ErrorReason(world.memory.LookupJob(kOther).status()) == "JOB_NOT_FOUND");
  CHECK_THAT(world.memory.LookupJob(kJob).status(), IsOk());
}

TEST_CASE("Coordinator compacts the logs of jobs that ended long enough ago", "[coordinator]") {
  testing::FakeClock clock;
  World world;
  world.clock = &clock;
  world.log_retention = absl::Hours(24);
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  const auto events = [&world] { return *world.memory.ReadEvents(kJob, 0, 1000); };
  const std::vector<v1::JobEvent> whole = events();
  const auto candidates = world.Candidates();

  clock.Advance(absl::Hours(23));
  for (int i = 0; i < 20; ++i) world.Turn();
  CHECK(events().size() == whole.size());

  clock.Advance(absl::Hours(2));
  const absl::Time deadline = absl::Now() + kPatience;
  while (events().size() == whole.size() && absl::Now() < deadline) world.Turn();
  std::map<std::string, v1::Candidate> told;
  for (const v1::JobEvent& event : events()) {
    if (event.has_candidate())
      CHECK(told.emplace(event.candidate().name(), event.candidate()).second);
  }
  REQUIRE(told.size() == candidates.size());
  for (const v1::Candidate& each : candidates) {
    CHECK(told[each.name()].SerializeAsString() == each.SerializeAsString());
  }
  CHECK(events().back().sequence() == whole.back().sequence());
}

TEST_CASE("Coordinator keeps jobs for ever unless it is told otherwise", "[coordinator]") {
  testing::FakeClock clock;
  World world;
  world.clock = &clock;
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();

  clock.Advance(absl::Hours(24 * 365));
  for (int i = 0; i < 20; ++i) world.Turn();

  CHECK_THAT(world.memory.LookupJob(kJob).status(), IsOk());
}

TEST_CASE("Coordinator forgets no job that has not ended", "[coordinator]") {
  testing::FakeClock clock;
  World world;
  world.clock = &clock;
  world.retention = absl::Hours(1);
  world.Start();
  world.Create(world.Request());
  REQUIRE_THAT(world.coordinator->PauseJob(kJob).status(), IsOk());

  clock.Advance(absl::Hours(24));
  for (int i = 0; i < 20; ++i) world.Turn();

  CHECK_THAT(world.memory.LookupJob(kJob).status(), IsOk());
}

}  // namespace mtmc::coordinator
