// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/artifact_sweep.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/time/clock.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;
using testing::StatusIs;

const std::atomic<bool> kGoesOn = false;
const std::atomic<bool> kStops = true;

v1::Digest Put(World& world, const std::string& bytes) {
  const auto digest = world.artifacts->Put(bytes);
  REQUIRE_THAT(digest.status(), IsOk());
  return *digest;
}

// As if a week had passed since the artifacts were written.
absl::StatusOr<SweptArtifacts> SweepLater(World& world, bool is_trial = false,
                                          const std::atomic<bool>& is_stopped = kGoesOn) {
  const ArtifactSweep sweep{.jobs = world.store,
                            .artifacts = *world.artifacts,
                            .retention = absl::Hours(24),
                            .is_trial = is_trial,
                            .is_stopped = is_stopped};
  return sweep.Run(absl::Now() + absl::Hours(24 * 7));
}

// Of the job and all its candidates.
int CountReferences(World& world) {
  int count = 0;
  REQUIRE(*world.artifacts->Contains(world.memory.LookupJob(kJob)->problem().source()));
  for (const v1::Candidate& candidate : world.Candidates()) {
    if (candidate.program().sha256().empty()) continue;
    CHECK(*world.artifacts->Contains(candidate.program()));
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("ArtifactSweep removes what nothing refers to, and keeps the rest", "[coordinator]") {
  World world;
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  world.Create(request);
  world.AwaitEnd();
  const v1::Digest forgotten = Put(world, "nobody's program");

  const auto swept = SweepLater(world);

  REQUIRE_THAT(swept.status(), IsOk());
  CHECK(swept->num_removed == 1);
  CHECK(swept->num_removed_bytes == 16);
  CHECK(swept->num_blobs > 2);
  CHECK_FALSE(*world.artifacts->Contains(forgotten));
  CHECK(CountReferences(world) > 1);
}

TEST_CASE("ArtifactSweep keeps the start program of a job that waits", "[coordinator]") {
  World world;
  world.Start();
  v1::CreateJobRequest request = world.Request();
  *request.mutable_job()->mutable_start_program() = Put(world, "a start");
  world.Create(request);

  REQUIRE_THAT(SweepLater(world).status(), IsOk());

  CHECK(*world.artifacts->Contains(request.job().start_program()));
  CHECK(*world.artifacts->Contains(request.job().problem().source()));
}

TEST_CASE("ArtifactSweep removes nothing that is young", "[coordinator]") {
  World world;
  const v1::Digest young = Put(world, "just written");
  const ArtifactSweep sweep{.jobs = world.store,
                            .artifacts = *world.artifacts,
                            .retention = absl::Hours(1),
                            .is_stopped = kGoesOn};

  CHECK(sweep.Run(absl::Now() + absl::Minutes(59))->num_removed == 0);

  CHECK(*world.artifacts->Contains(young));
  CHECK(sweep.Run(absl::Now() + absl::Minutes(61))->num_removed == 1);
}

TEST_CASE("ArtifactSweep removes nothing in a trial", "[coordinator]") {
  World world;
  const v1::Digest forgotten = Put(world, "nobody's");

  CHECK(SweepLater(world, /*is_trial=*/true)->num_removed == 1);

  CHECK(*world.artifacts->Contains(forgotten));
}

TEST_CASE("ArtifactSweep removes nothing when a job cannot be read, or it is stopped",
          "[coordinator]") {
  World world;
  const v1::Digest forgotten = Put(world, "nobody's");
  world.store.CrashAt(1, false);
  CHECK_FALSE(world.store.Commit({}).ok());

  CHECK_FALSE(SweepLater(world).ok());
  world.store.Revive();
  CHECK_THAT(SweepLater(world, false, kStops).status(), StatusIs(absl::StatusCode::kCancelled));

  CHECK(*world.artifacts->Contains(forgotten));
}

TEST_CASE("Coordinator sweeps artifacts of deleted jobs while others run", "[coordinator]") {
  testing::FakeClock clock;
  clock.Advance(absl::Now() - clock.Now());
  World world;
  world.clock = &clock;
  world.artifact_retention = absl::Hours(24);
  world.StartWithWorker();
  world.Create(world.Request());
  world.AwaitEnd();
  // The first one may be written by the other job as well, and not each has one.
  v1::Digest last;
  for (const v1::Candidate& candidate : world.Candidates()) {
    if (candidate.has_program()) last = candidate.program();
  }
  REQUIRE_THAT(world.coordinator->DeleteJob(kJob), IsOk());
  v1::CreateJobRequest paused = world.Request();
  paused.set_job_id("paused");
  paused.set_request_id("");
  *paused.mutable_job()->mutable_problem()->mutable_source() = Put(world, "another problem");
  world.Create(paused);
  REQUIRE_THAT(world.coordinator->PauseJob("projects/p/jobs/paused").status(), IsOk());

  clock.Advance(absl::Hours(25));
  const absl::Time deadline = absl::Now() + kPatience;
  while (*world.artifacts->Contains(last) && absl::Now() < deadline) world.Turn();

  CHECK_FALSE(*world.artifacts->Contains(last));
  CHECK(*world.artifacts->Contains(paused.job().problem().source()));
}

}  // namespace mtmc::coordinator
