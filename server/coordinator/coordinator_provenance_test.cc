// SPDX-License-Identifier: Apache-2.0
//
// What a candidate keeps of how it came to be.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/config/version.h"
#include "common/testing/status_matchers.h"
#include "server/coordinator/artifact_sweep.h"
#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

using testing::IsOk;

const std::atomic<bool> kGoesOn = false;

std::string TextOf(World& world, const v1::Digest& digest) {
  return *store::ReadWhole(*world.artifacts, digest, /*max_bytes=*/1 << 10);
}

// The steps of a job that a language model has written, all told to `world`.
std::vector<v1::Candidate> WrittenSteps(World& world) {
  world.coder.Speak();
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request();
  request.mutable_job()->mutable_search()->set_coder("llm");
  REQUIRE_THAT(world.coordinator->CreateJob(request, nullptr, "ann").status(), IsOk());
  world.AwaitEnd();
  std::vector<v1::Candidate> steps = world.Candidates();
  steps.erase(steps.begin());
  REQUIRE(steps.size() > 2);
  return steps;
}

TEST_CASE("A candidate names what was said to its model, and the store has it", "[coordinator]") {
  World world;
  for (const v1::Candidate& step : WrittenSteps(world)) {
    const std::string& action = step.action().text();
    CAPTURE(step.name(), action);
    const v1::TokenUse& use = step.token_use();
    CHECK(use.model() == "parrot");
    CHECK(TextOf(world, use.prompt()) == absl::StrCat("ask ", action));
    CHECK(TextOf(world, use.reply()) == absl::StrCat("said ", action));
    CHECK(world.memory.FindOwned({use.prompt().sha256()}, {"projects/p"})->size() == 1);
  }
}

TEST_CASE("What was said to a model stays as long as its job", "[coordinator]") {
  World world;
  const std::vector<v1::Candidate> steps = WrittenSteps(world);
  const ArtifactSweep sweep{.jobs = world.store,
                            .artifacts = *world.artifacts,
                            .retention = absl::Hours(24),
                            .is_stopped = kGoesOn};
  const auto sweep_later = [&] {
    REQUIRE_THAT(sweep.Run(absl::Now() + absl::Hours(24 * 7)).status(), IsOk());
  };
  const v1::Digest reply = steps.front().token_use().reply();

  sweep_later();
  CHECK(*world.artifacts->Contains(reply));

  REQUIRE_THAT(world.coordinator->DeleteJob(kJob), IsOk());
  sweep_later();
  CHECK_FALSE(*world.artifacts->Contains(reply));
}

TEST_CASE("A candidate says which strategy of which version chose its action", "[coordinator]") {
  World world;
  for (const v1::Candidate& step : WrittenSteps(world)) {
    CHECK(step.decision().strategy() == "mtmc");
    CHECK(step.decision().version() == config::Version());
  }
}

TEST_CASE("A job says who created it and what models took", "[coordinator]") {
  World world;
  const std::vector<v1::Candidate> steps = WrittenSteps(world);

  const v1::Job job = *world.memory.LookupJob(kJob);
  CHECK(job.creator() == "ann");
  CHECK(job.budget_use().cost_micros() == 7 * static_cast<int64_t>(steps.size()));
}

}  // namespace
}  // namespace mtmc::coordinator
