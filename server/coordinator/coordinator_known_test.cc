// SPDX-License-Identifier: Apache-2.0
// Steps to programs that the job has judged before (server/search/known_step.h).
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "server/coordinator/coordinator_fixture.h"

namespace mtmc::coordinator {
namespace {

// The programs of FakeCoder when its space is closed.
constexpr int kPrograms = 8;

v1::CreateJobRequest LongRequest(World& world, const std::string& strategy) {
  v1::CreateJobRequest request = world.Request(strategy);
  request.mutable_job()->mutable_budget()->set_max_trials(100);
  request.mutable_job()->mutable_search()->set_patience(100);
  return request;
}

// Candidates by what they are: a new program, a known one, or none.
struct Tally {
  std::set<std::string> programs;
  int known = 0;
  int rejected = 0;
};

Tally Count(World& world) {
  Tally tally;
  for (const v1::Candidate& candidate : world.Candidates()) {
    if (candidate.state() == v1::Candidate::STATE_REJECTED) {
      ++tally.rejected;
    } else if (!tally.programs.insert(candidate.program().sha256()).second) {
      CHECK(candidate.evaluation().is_cached());
      CHECK(candidate.has_decision());
      CHECK(candidate.has_reward());
      ++tally.known;
    }
  }
  return tally;
}

TEST_CASE("A search of a closed set of programs ends when each was judged once", "[coordinator]") {
  const std::string strategy = GENERATE("mtmc", "random");
  CAPTURE(strategy);
  World world;
  world.coder.CloseSpace();
  world.StartWithWorker();

  world.Create(LongRequest(world, strategy));
  const v1::Job job = world.AwaitEnd();

  CHECK(job.end_reason() == v1::Job::END_REASON_NO_ACTION);
  const Tally tally = Count(world);
  CHECK(tally.known > 0);
  CHECK(tally.programs.size() <= kPrograms);
  CHECK(job.budget_use().trials() == static_cast<int>(tally.programs.size()) - 1 + tally.rejected);
  int executions = 0;
  for (const auto& [name, count] : world.worker.executions()) executions += count;
  CHECK(executions == static_cast<int>(tally.programs.size()) + 1);
  CheckEvents(world);
}

TEST_CASE("Known steps do not use up the trials of a job", "[coordinator]") {
  World world;
  world.coder.CloseSpace();
  world.StartWithWorker();

  world.Create(world.Request("random"));
  const v1::Job job = world.AwaitEnd();

  const Tally tally = Count(world);
  CHECK(job.end_reason() == v1::Job::END_REASON_TRIALS);
  CHECK(static_cast<int>(tally.programs.size()) - 1 + tally.rejected == 6);
  CHECK(job.budget_use().trials() == 6);
}

TEST_CASE("A language model that repeats a program costs a trial and no evaluation",
          "[coordinator]") {
  World world;
  world.coder.CloseSpace();
  world.StartWithWorker();
  v1::CreateJobRequest request = world.Request("random");
  request.mutable_job()->mutable_search()->set_coder("llm");
  request.mutable_job()->mutable_budget()->set_max_trials(30);

  world.Create(request);
  const v1::Job job = world.AwaitEnd();

  const Tally tally = Count(world);
  CHECK(tally.known > 0);
  CHECK(job.budget_use().trials() == static_cast<int>(world.Candidates().size()) - 1);
  CHECK(world.worker.executions().size() == tally.programs.size() + 1);
}

TEST_CASE("A search with known steps is the same after a crash at any write", "[coordinator]") {
  const bool is_committed = GENERATE(false, true);
  CAPTURE(is_committed);
  World calm;
  calm.coder.CloseSpace();
  calm.StartWithWorker();
  calm.Create(LongRequest(calm, "mtmc"));
  calm.AwaitEnd();
  REQUIRE(Count(calm).known > 0);

  for (int crash = 1; crash <= calm.store.commits(); ++crash) {
    CAPTURE(crash);
    World world;
    world.coder.CloseSpace();
    world.StartWithWorker();
    const v1::CreateJobRequest request = LongRequest(world, "mtmc");
    world.store.CrashAt(crash, is_committed);
    world.coordinator->CreateJob(request).IgnoreError();  // It may be what crashes.
    while (!world.store.is_dead() && !world.memory.LookupJob(kJob)->has_end_time()) world.Turn();
    world.Stop();
    world.store.Revive();
    world.StartWithWorker();
    world.Create(request);
    world.AwaitEnd();

    REQUIRE(Essence(world) == Essence(calm));
    CheckEvents(world);
  }
}

}  // namespace
}  // namespace mtmc::coordinator
