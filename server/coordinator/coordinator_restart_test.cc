// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

TEST_CASE("Coordinator goes on by itself after a crash at any write", "[coordinator]") {
  const bool is_committed = GENERATE(false, true);
  CAPTURE(is_committed);
  World calm;
  calm.StartWithWorker();
  calm.Create(calm.Request());
  calm.AwaitEnd();
  const std::string expected = Essence(calm);
  const int commits = calm.store.commits();
  REQUIRE(commits > 30);

  for (int crash = 1; crash <= commits; ++crash) {
    CAPTURE(crash);
    World world;
    world.StartWithWorker();
    const v1::CreateJobRequest request = world.Request();
    world.store.CrashAt(crash, is_committed);
    world.coordinator->CreateJob(request).IgnoreError();  // It may be what crashes.
    while (!world.store.is_dead() && !world.memory.LookupJob(kJob)->has_end_time()) world.Turn();
    world.Stop();
    world.store.Revive();
    world.StartWithWorker();
    world.Create(request);
    world.AwaitEnd();

    REQUIRE(Essence(world) == expected);
    CheckEvents(world);
    for (const auto& [name, count] : world.worker.executions()) {
      INFO(name);
      CHECK(count == 1);
    }
  }
}

TEST_CASE("Coordinator goes on when worker and coordinator die together", "[coordinator]") {
  World calm;
  calm.StartWithWorker();
  calm.Create(calm.Request());
  calm.AwaitEnd();

  for (int crash = 3; crash <= calm.store.commits(); crash += 5) {
    CAPTURE(crash);
    World world;
    world.StartWithWorker();
    world.store.CrashAt(crash, /*is_committed=*/true);
    world.coordinator->CreateJob(world.Request()).IgnoreError();  // As above.
    while (!world.store.is_dead() && !world.memory.LookupJob(kJob)->has_end_time()) world.Turn();
    world.Stop();
    world.store.Revive();
    world.worker.Restart();
    world.StartWithWorker();
    world.Create(world.Request());
    world.AwaitEnd();

    REQUIRE(Essence(world) == Essence(calm));
    CheckEvents(world);
  }
}

}  // namespace
}  // namespace mtmc::coordinator
