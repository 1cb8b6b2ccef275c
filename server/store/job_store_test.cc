// SPDX-License-Identifier: Apache-2.0
//
// The contract of JobStore, run on every implementation.
#include "server/store/job_store.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/base/temp_dir.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/sqlite_job_store.h"
#include "server/store/store_makers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

v1::Candidate MakeCandidate(const std::string& job, int trial) {
  v1::Candidate candidate;
  candidate.set_name(job + "/candidates/c" + std::to_string(trial));
  candidate.set_trial(trial);
  return candidate;
}

absl::Status Insert(JobStore& store, const std::string& name, const std::string& request_id = "") {
  return store.Commit({.job_name = name, .new_job = MakeJob(name), .request_id = request_id});
}

std::string ErrorReason(const absl::Status& status) { return rpc::ErrorReason(status); }

}  // namespace

TEMPLATE_TEST_CASE("JobStore numbers the events of a job from 1 without gaps", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(Insert(*store, kJob), IsOk());
  REQUIRE_THAT(Insert(*store, "projects/p/jobs/b"), IsOk());

  REQUIRE_THAT(store->Commit({.job_name = kJob, .events = {Notice("x"), Notice("y")}}), IsOk());
  REQUIRE_THAT(store->Commit({.job_name = "projects/p/jobs/b", .events = {Notice("z")}}), IsOk());
  REQUIRE_THAT(store->Commit({.job_name = kJob, .events = {Notice("w")}}), IsOk());

  const auto events = *store->ReadEvents(kJob, 1, 10);
  REQUIRE(events.size() == 2);
  CHECK(events[0].sequence() == 2);
  CHECK(events[1].sequence() == 3);
  CHECK(events[1].notice() == "w");
}

TEMPLATE_TEST_CASE("JobStore refuses a change of a job that does not exist", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();

  const absl::Status status = store->Commit({.job_name = kJob, .events = {Notice("x")}});

  CHECK_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  CHECK(ErrorReason(status) == "JOB_NOT_FOUND");
  CHECK(store->ReadEvents(kJob, 0, 10)->empty());
}

TEMPLATE_TEST_CASE("JobStore writes nothing of a refused Write", "[store]", SqliteMaker, FakeMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(Insert(*store, kJob), IsOk());

  const absl::Status status = store->Commit({.job_name = kJob,
                                             .new_job = MakeJob(kJob),
                                             .events = {Notice("x")},
                                             .leases = {{.id = "l", .work = "w"}}});

  CHECK_THAT(status, StatusIs(absl::StatusCode::kAlreadyExists));
  CHECK(store->ReadEvents(kJob, 0, 10)->empty());
  CHECK(store->ReadFleet()->leases.empty());
}

TEMPLATE_TEST_CASE("JobStore finds a job by its request id and takes no second one", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(Insert(*store, kJob, "r1"), IsOk());

  CHECK_THAT(Insert(*store, "projects/p/jobs/b", "r1"), StatusIs(absl::StatusCode::kAlreadyExists));
  CHECK_THAT(Insert(*store, "projects/q/jobs/b", "r1"), IsOk());

  const auto page = *store->ListJobs({.project = "projects/p", .request_id = "r1"});
  REQUIRE(page.jobs.size() == 1);
  CHECK(page.jobs[0].name() == kJob);
}

TEMPLATE_TEST_CASE("JobStore shows a job with the inspection that was named for it", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(Insert(*store, kJob), IsOk());
  v1::Inspection inspection;
  inspection.set_minimum_bytes(7);

  REQUIRE_THAT(store->Commit({.job_name = kJob,
                              .job = MakeJob(kJob),
                              .inspection_key = "k",
                              .inspection = InspectionRecord{"k", inspection}}),
               IsOk());

  CHECK(store->LookupJob(kJob)->inspection().minimum_bytes() == 7);
  CHECK(*store->LookupState(kJob) == v1::Job::STATE_PENDING);
  CHECK_THAT(store->LookupState("projects/p/jobs/none").status(),
             StatusIs(absl::StatusCode::kNotFound));
  CHECK_FALSE(store->ListJobs({})->jobs[0].has_inspection());
}

TEMPLATE_TEST_CASE("JobStore pages jobs newest first", "[store]", SqliteMaker, FakeMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  for (const char* name : {"projects/p/jobs/a", "projects/p/jobs/b", "projects/p/jobs/c"}) {
    REQUIRE_THAT(Insert(*store, name), IsOk());
  }
  REQUIRE_THAT(Insert(*store, "projects/other/jobs/d"), IsOk());

  const auto first = *store->ListJobs({.project = "projects/p", .page_size = 2});
  const auto second = *store->ListJobs(
      {.project = "projects/p", .page_size = 2, .page_token = first.next_page_token});

  REQUIRE(first.jobs.size() == 2);
  CHECK(first.jobs[0].name() == "projects/p/jobs/c");
  REQUIRE(second.jobs.size() == 1);
  CHECK(second.jobs[0].name() == "projects/p/jobs/a");
  CHECK(second.next_page_token.empty());
}

TEMPLATE_TEST_CASE("JobStore refuses the page token of another listing", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(Insert(*store, "projects/p/jobs/a"), IsOk());
  REQUIRE_THAT(Insert(*store, "projects/p/jobs/b"), IsOk());
  const std::string token =
      store->ListJobs({.project = "projects/p", .page_size = 1})->next_page_token;

  const auto jobs = store->ListJobs({.project = "projects/q", .page_token = token});
  const auto candidates = store->ListCandidates({.job = kJob, .page_token = "rubbish"});

  CHECK(ErrorReason(jobs.status()) == "INVALID_PAGE_TOKEN");
  CHECK(ErrorReason(candidates.status()) == "INVALID_PAGE_TOKEN");
  CHECK(ErrorReason(store->ListJobs({.page_size = -1}).status()) == "INVALID_PAGE_SIZE");
}

TEMPLATE_TEST_CASE("JobStore lists candidates by trial and keeps the last version", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(Insert(*store, kJob), IsOk());
  v1::Candidate changed = MakeCandidate(kJob, 2);
  changed.set_coder("builtin");

  REQUIRE_THAT(
      store->Commit({.job_name = kJob,
                     .events = {Told(MakeCandidate(kJob, 10)), Told(MakeCandidate(kJob, 2))}}),
      IsOk());
  REQUIRE_THAT(store->Commit({.job_name = kJob, .events = {Notice("x"), Told(changed)}}), IsOk());

  const auto page = *store->ListCandidates({.job = kJob, .page_size = 1});
  REQUIRE(page.candidates.size() == 1);
  CHECK(page.candidates[0].coder() == "builtin");
  const auto rest = *store->ListCandidates({.job = kJob, .page_token = page.next_page_token});
  CHECK(rest.candidates[0].trial() == 10);
  CHECK(store->LookupCandidate(changed.name())->coder() == "builtin");
  CHECK(ErrorReason(store->LookupCandidate("x").status()) == "CANDIDATE_NOT_FOUND");
}

TEMPLATE_TEST_CASE("JobStore tells a search of each candidate as it is, and of decisions",
                   "[store]", SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(Insert(*store, kJob), IsOk());
  const auto record = [&store](v1::JobEvent event) {
    event.mutable_time()->set_seconds(1'790'000'000);
    event.mutable_time()->set_nanos(999'999'999);
    REQUIRE_THAT(store->Commit({.job_name = kJob, .events = {event, Notice("x")}}), IsOk());
  };
  v1::JobEvent stop;
  stop.mutable_decision()->set_policy("rules");
  for (int trial = 0; trial < 3; ++trial) {
    v1::Candidate candidate = MakeCandidate(kJob, trial);
    for (const auto state : {v1::Candidate::STATE_PENDING, v1::Candidate::STATE_RUNNING,
                             v1::Candidate::STATE_EVALUATED}) {
      candidate.set_state(state);
      record(Told(candidate));
    }
    if (trial == 1) record(stop);
  }

  std::string told;
  const auto events = *store->ReadLineage(kJob);
  for (const v1::JobEvent& event : events) {
    if (event.has_decision()) told += event.decision().policy() + " ";
    if (event.candidate().state() != v1::Candidate::STATE_EVALUATED) continue;
    told +=
        std::to_string(event.sequence()) + ":c" + std::to_string(event.candidate().trial()) + " ";
  }
  CHECK(told == "5:c0 11:c1 rules 19:c2 ");
  CHECK(store->ReadLineage("projects/p/jobs/none")->empty());
}

TEST_CASE("SqliteJobStore reads of a lineage what a search goes by, and nothing else", "[store]") {
  SqliteMaker maker;
  auto store = maker.Open();
  REQUIRE_THAT(Insert(*store, kJob), IsOk());
  v1::JobEvent job;
  *job.mutable_job() = MakeJob(kJob);
  v1::Candidate candidate = MakeCandidate(kJob, 0);
  const v1::JobEvent pending = Told(candidate);
  candidate.set_state(v1::Candidate::STATE_EVALUATED);
  REQUIRE_THAT(store->Commit(
                   {.job_name = kJob, .events = {job, pending, Notice("x"), Told(candidate), job}}),
               IsOk());

  const auto events = *store->ReadLineage(kJob);

  REQUIRE(events.size() == 1);
  CHECK(events[0].sequence() == 4);
}

TEMPLATE_TEST_CASE("JobStore keeps the first evaluation of a fingerprint", "[store]", SqliteMaker,
                   FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();

  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"f", "first", {}}}), IsOk());
  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"f", "second", {}}}), IsOk());

  CHECK((*store->FindEvaluation("f"))->candidate == "first");
  CHECK_FALSE(store->FindEvaluation("g")->has_value());
}

TEMPLATE_TEST_CASE("JobStore puts an evaluation before one without its second session", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  v1::Evaluation unconfirmed;
  unconfirmed.set_skipped_confirmation(true);

  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"f", "first", unconfirmed}}), IsOk());
  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"f", "second", unconfirmed}}), IsOk());
  CHECK((*store->FindEvaluation("f"))->candidate == "first");
  v1::Evaluation profiled = unconfirmed;
  profiled.mutable_profile()->set_source("cupti");
  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"f", "profiled", profiled}}), IsOk());
  CHECK((*store->FindEvaluation("f"))->candidate == "profiled");
  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"f", "later", unconfirmed}}), IsOk());
  CHECK((*store->FindEvaluation("f"))->candidate == "profiled");
  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"f", "third", {}}}), IsOk());
  CHECK((*store->FindEvaluation("f"))->candidate == "third");
  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"f", "fourth", unconfirmed}}), IsOk());

  CHECK((*store->FindEvaluation("f"))->candidate == "third");
}

TEMPLATE_TEST_CASE("JobStore drops every lease of finished work", "[store]", SqliteMaker, FakeMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  const LeaseRecord kept{.id = "c",
                         .work = "w2",
                         .identity = "alice",
                         .losses = 2,
                         .crashes = 1,
                         .is_lost = true,
                         .is_ahead = true};
  REQUIRE_THAT(
      store->Commit({.leases = {{.id = "a", .work = "w1"}, {.id = "b", .work = "w1"}, kept}}),
      IsOk());

  REQUIRE_THAT(store->Commit({.finished_work = "w1"}), IsOk());

  const Fleet fleet = *store->ReadFleet();
  REQUIRE(fleet.leases.size() == 1);
  CHECK(fleet.leases[0].losses == 2);
  CHECK(fleet.leases[0].is_lost);
  CHECK(fleet.leases[0].is_ahead);
  CHECK(fleet.leases[0].identity == "alice");
}

TEMPLATE_TEST_CASE("JobStore forgets workers", "[store]", SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  v1::Worker gone;
  gone.set_name("workers/gone");
  v1::Worker kept;
  kept.set_name("workers/kept");
  REQUIRE_THAT(store->Commit({.workers = {{.worker = gone}, {.worker = kept}}}), IsOk());

  REQUIRE_THAT(store->Commit({.forgotten_workers = {"workers/gone", "workers/never"}}), IsOk());

  const auto fleet = store->ReadFleet();
  REQUIRE_THAT(fleet.status(), IsOk());
  REQUIRE(fleet->workers.size() == 1);
  CHECK(fleet->workers.front().worker.name() == "workers/kept");
}

TEMPLATE_TEST_CASE("JobStore keeps whose a worker's name is", "[store]", SqliteMaker, FakeMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  v1::Worker worker;
  worker.set_name("workers/w");
  REQUIRE_THAT(store->Commit({.workers = {{.worker = worker, .identity = "alice"}}}), IsOk());
  CHECK(store->ReadFleet()->workers.at(0).identity == "alice");

  REQUIRE_THAT(store->Commit({.workers = {{.worker = worker, .identity = "bob"}}}), IsOk());

  CHECK(store->ReadFleet()->workers.at(0).identity == "bob");
}

TEST_CASE("SqliteJobStore has everything again after it was opened again", "[store]") {
  SqliteMaker maker;
  v1::Worker worker;
  worker.set_name("workers/w");
  {
    auto store = maker.Open();
    REQUIRE_THAT(Insert(*store, kJob), IsOk());
    REQUIRE_THAT(store->Commit({.job_name = kJob,
                                .events = {Notice(std::string("nul \0 byte", 10)),
                                           Told(MakeCandidate(kJob, 0))},
                                .workers = {{.worker = worker, .is_draining = true}}}),
                 IsOk());
  }

  auto store = maker.Open();

  CHECK(store->LookupJob(kJob)->state() == v1::Job::STATE_PENDING);
  CHECK(store->ListCandidates({.job = kJob})->candidates.size() == 1);
  CHECK(store->ReadEvents(kJob, 0, 10)->front().notice().size() == 10);
  CHECK(store->ReadFleet()->workers.front().is_draining);
}

TEST_CASE("SqliteJobStore says DISK_FULL and keeps what it had", "[store]") {
  SqliteMaker maker;
  auto store = maker.Open({.survives_power_loss = false, .max_bytes = 300'000});
  REQUIRE_THAT(Insert(*store, kJob), IsOk());

  absl::Status status;
  int written = 0;
  while (status.ok() && written < 100) {
    status = store->Commit({.job_name = kJob, .events = {Notice(std::string(20'000, 'x'))}});
    if (status.ok()) ++written;
  }

  CHECK_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK(ErrorReason(status) == "DISK_FULL");
  CHECK(store->ReadEvents(kJob, 0, 1000)->size() == static_cast<size_t>(written));
}

TEST_CASE("SqliteJobStore takes a path with spaces and quotes", "[store]") {
  const auto folder = *base::TempDir::Create("store");

  const auto store = SqliteJobStore::Open((folder.path() / "it's a db").string(), {});

  CHECK_THAT(store.status(), IsOk());
}

}  // namespace mtmc::store
