// SPDX-License-Identifier: Apache-2.0
//
// What JobStore promises of deleted jobs, on every implementation.
#include <catch2/catch.hpp>
#include <string>

#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/store/fenced_job_store.h"
#include "server/store/store_makers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;

constexpr char kOther[] = "projects/p/jobs/b";

// A job with one of everything, and the inspection `key`.
Write Whole(const std::string& name, const std::string& request_id, const std::string& key) {
  Write write{.job_name = name, .new_job = MakeJob(name), .request_id = request_id};
  v1::Candidate candidate;
  candidate.set_name(name + "/candidates/c0");
  write.events = {Notice("x"), Told(candidate)};
  write.evaluation = EvaluationRecord{"fingerprint of " + name, candidate.name(), {}};
  write.inspection_key = key;
  write.inspection = InspectionRecord{key, {}};
  return write;
}

}  // namespace

TEMPLATE_TEST_CASE("JobStore leaves nothing of a deleted job", "[store]", SqliteMaker, FakeMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(Whole(kJob, "r", "k")), IsOk());

  REQUIRE_THAT(store->Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());

  CHECK(rpc::ErrorReason(store->LookupJob(kJob).status()) == "JOB_NOT_FOUND");
  CHECK(store->ListJobs({})->jobs.empty());
  CHECK(store->ListJobs({.project = "projects/p", .request_id = "r"})->jobs.empty());
  CHECK(store->ReadEvents(kJob, 0, 10)->empty());
  CHECK(store->ListCandidates({.job = kJob})->candidates.empty());
  CHECK_FALSE(store->FindEvaluation("fingerprint of " + std::string(kJob))->has_value());
  CHECK_FALSE(store->FindInspection("k")->has_value());
}

TEMPLATE_TEST_CASE("JobStore keeps what belongs to other jobs than the deleted one", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(Whole(kJob, "r", "k")), IsOk());
  REQUIRE_THAT(store->Commit(Whole(kOther, "s", "k")), IsOk());

  REQUIRE_THAT(store->Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());

  CHECK_THAT(store->LookupJob(kOther).status(), IsOk());
  CHECK(store->ReadEvents(kOther, 0, 10)->size() == 2);
  CHECK(store->ListCandidates({.job = kOther})->candidates.size() == 1);
  CHECK(store->FindEvaluation("fingerprint of " + std::string(kOther))->has_value());
  CHECK(store->FindInspection("k")->has_value());
}

TEMPLATE_TEST_CASE("JobStore takes a job with the name and request of a deleted one", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(Whole(kJob, "r", "k")), IsOk());
  REQUIRE_THAT(store->Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());

  CHECK_THAT(store->Commit(Whole(kJob, "r", "k")), IsOk());
  CHECK(store->ReadEvents(kJob, 0, 1)->front().sequence() == 1);
}

TEMPLATE_TEST_CASE("JobStore deletes no job that is not there", "[store]", SqliteMaker, FakeMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();

  const absl::Status status = store->Commit({.job_name = kJob, .is_job_deleted = true});

  CHECK(rpc::ErrorReason(status) == "JOB_NOT_FOUND");
}

TEMPLATE_TEST_CASE("JobStore deletes nothing for an owner whose epoch is over", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(Whole(kJob, "r", "k")), IsOk());
  FencedJobStore late(*store, 7);

  const absl::Status status = late.Commit({.job_name = kJob, .is_job_deleted = true});

  CHECK(rpc::ErrorReason(status) == "NOT_OWNER");
  CHECK_THAT(store->LookupJob(kJob).status(), IsOk());
}

}  // namespace mtmc::store
