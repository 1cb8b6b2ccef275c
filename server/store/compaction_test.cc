// SPDX-License-Identifier: Apache-2.0
//
// What JobStore promises of compacted logs, on every implementation.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "google/protobuf/util/time_util.h"
#include "server/store/fenced_job_store.h"
#include "server/store/store_makers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using Sequences = std::vector<int64_t>;

constexpr char kOther[] = "projects/p/jobs/b";

v1::JobEvent State(const std::string& job, int trial, v1::Candidate::State state) {
  v1::Candidate candidate;
  candidate.set_name(job + "/candidates/c" + std::to_string(trial));
  candidate.set_trial(trial);
  candidate.set_state(state);
  return Told(candidate);
}

// A job with two candidates, of which the log has two states each.
void Run(JobStore& store, const std::string& name) {
  REQUIRE_THAT(
      store.Commit({.job_name = name,
                    .new_job = MakeJob(name),
                    .events = {Notice("begun"), State(name, 0, v1::Candidate::STATE_PENDING),
                               State(name, 1, v1::Candidate::STATE_PENDING)}}),
      IsOk());
  REQUIRE_THAT(
      store.Commit({.job_name = name,
                    .events = {State(name, 0, v1::Candidate::STATE_EVALUATED), Notice("again"),
                               State(name, 1, v1::Candidate::STATE_REJECTED)}}),
      IsOk());
}

// As one that ended so many seconds after the epoch.
void End(JobStore& store, const std::string& name, int64_t seconds) {
  v1::Job job = MakeJob(name);
  job.set_state(v1::Job::STATE_SUCCEEDED);
  *job.mutable_end_time() = google::protobuf::util::TimeUtil::SecondsToTimestamp(seconds);
  REQUIRE_THAT(store.Commit({.job_name = name, .job = job, .events = {Notice("ended")}}), IsOk());
}

Sequences Log(JobStore& store, const std::string& name) {
  Sequences sequences;
  for (const v1::JobEvent& event : *store.ReadEvents(name, 0, 100)) {
    sequences.push_back(event.sequence());
  }
  return sequences;
}

}  // namespace

TEMPLATE_TEST_CASE("JobStore finds what logs of ended jobs can do without", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  Run(*store, kJob);
  Run(*store, kOther);
  CHECK(store->FindCompactions(absl::InfiniteFuture(), 10)->empty());
  End(*store, kJob, 200);
  End(*store, kOther, 100);

  CHECK(store->FindCompactions(absl::FromUnixSeconds(100), 10)->empty());
  const auto first = *store->FindCompactions(absl::FromUnixSeconds(300), 1);
  REQUIRE(first.size() == 1);
  CHECK(first[0].job == kOther);
  CHECK(first[0].superseded == Sequences{2, 3});
  CHECK(store->FindCompactions(absl::FromUnixSeconds(300), 10)->size() == 2);
}

TEMPLATE_TEST_CASE("JobStore compacts a log once and loses nothing of it", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  Run(*store, kJob);
  Run(*store, kOther);
  End(*store, kJob, 100);
  const auto found = *store->FindCompactions(absl::FromUnixSeconds(300), 10);
  REQUIRE(found.size() == 1);

  REQUIRE_THAT(store->Commit({.job_name = kJob, .superseded = found[0].superseded}), IsOk());

  CHECK(Log(*store, kJob) == Sequences{1, 4, 5, 6, 7});
  CHECK(Log(*store, kOther) == Sequences{1, 2, 3, 4, 5, 6});
  CHECK(store->FindCompactions(absl::FromUnixSeconds(300), 10)->empty());
  const auto page = *store->ListCandidates({.job = kJob});
  REQUIRE(page.candidates.size() == 2);
  CHECK(page.candidates[0].state() == v1::Candidate::STATE_EVALUATED);
  CHECK(page.candidates[1].state() == v1::Candidate::STATE_REJECTED);
  // What comes later has a number of its own.
  REQUIRE_THAT(store->Commit({.job_name = kJob, .events = {Notice("late")}}), IsOk());
  CHECK(Log(*store, kJob) == Sequences{1, 4, 5, 6, 7, 8});
  CHECK(rpc::ErrorReason(store->Commit(
            {.job_name = "projects/p/jobs/none", .superseded = Sequences{1}})) == "JOB_NOT_FOUND");
}

TEMPLATE_TEST_CASE("JobStore compacts logs within a group of commits", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  Run(*store, kJob);
  End(*store, kJob, 100);
  store->BeginGroups();

  REQUIRE_THAT(store->Commit({.job_name = kJob, .superseded = Sequences{2, 3}}), IsOk());
  store->EndGroups();

  CHECK(Log(*store, kJob) == Sequences{1, 4, 5, 6, 7});
}

}  // namespace mtmc::store
