// SPDX-License-Identifier: Apache-2.0
//
// The contract of ArtifactUses, run on every implementation.
#include "server/store/artifact_uses.h"

#include <soci/postgresql/soci-postgresql.h>
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/testing/status_matchers.h"
#include "server/store/sql_codec.h"
#include "server/store/store_makers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using Names = std::set<std::string>;

constexpr char kOther[] = "projects/q/jobs/a";

v1::Digest Digest(const std::string& sha256) {
  v1::Digest digest;
  digest.set_sha256(sha256);
  return digest;
}

Write NewJob(const std::string& name, const std::string& source, const std::string& start = "") {
  Write write{.job_name = name, .new_job = MakeJob(name)};
  *write.new_job->mutable_problem()->mutable_source() = Digest(source);
  if (!start.empty()) *write.new_job->mutable_start_program() = Digest(start);
  return write;
}

v1::Candidate MakeCandidate(const std::string& job, const std::string& program) {
  v1::Candidate candidate;
  candidate.set_name(job + "/candidates/c0");
  if (!program.empty()) *candidate.mutable_program() = Digest(program);
  return candidate;
}

Write NewCandidate(const std::string& job, const std::string& program) {
  return {.job_name = job, .events = {Told(MakeCandidate(job, program))}};
}

// Of all that the tests name.
Names Owned(ArtifactUses& uses, const std::vector<std::string>& projects) {
  const auto owned = uses.FindOwned({"source", "start", "program", "blob"}, projects);
  REQUIRE_THAT(owned.status(), IsOk());
  return *owned;
}

soci::session Connect(const SqliteMaker& maker) {
  return {soci::sqlite3, "dbname=\"" + (maker.folder.path() / "mtmc.db").string() + "\""};
}

soci::session Connect(const PostgresMaker& maker) { return {soci::postgresql, maker.database}; }

void ForgetVersion12(soci::session& session) {
  session << "DROP INDEX jobs_to_compact";
  session << "ALTER TABLE jobs DROP COLUMN is_compacted";
  session << "DELETE FROM schema_version WHERE version = 12";
}

void ForgetVersion11(soci::session& session) {
  ForgetVersion12(session);
  session << "ALTER TABLE evaluations DROP COLUMN rank";
  session << "DELETE FROM schema_version WHERE version = 11";
}

// What version 10 of the schema has brought: the store's one candidate has its own body again.
void ForgetVersion10(soci::session& session, const v1::Candidate& candidate) {
  ForgetVersion11(session);
  const std::string body = sql::Encode(candidate);
  session << "UPDATE candidates SET body = :body", soci::use(body);
  session << "ALTER TABLE candidates DROP COLUMN event";
  session << "DELETE FROM schema_version WHERE version = 10";
}

void ForgetVersion9(soci::session& session) {
  session << "DROP TABLE artifact_uses";
  session << "DROP INDEX records_of_all_by_anchor";
  session << "DELETE FROM schema_version WHERE version = 9";
}

}  // namespace

TEMPLATE_TEST_CASE("What a job refers to belongs to its project, until it is deleted", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(NewJob(kJob, "source", "start")), IsOk());
  CHECK(Owned(*store, {"projects/p"}) == Names{"source", "start"});
  // A candidate is written before it has a program, and often after.
  REQUIRE_THAT(store->Commit(NewCandidate(kJob, "")), IsOk());
  for (int i = 0; i < 2; ++i) {
    REQUIRE_THAT(store->Commit(NewCandidate(kJob, "program")), IsOk());
  }

  CHECK(Owned(*store, {"projects/p"}) == Names{"source", "start", "program"});
  CHECK(Owned(*store, {"projects/q", "projects/p"}).size() == 3);
  // Not of one whose name begins alike.
  CHECK(Owned(*store, {"projects/q", "projects/", "projects/p0", ""}).empty());
  CHECK(Owned(*store, {}).empty());
  store = maker.Reopen(std::move(store));
  CHECK(Owned(*store, {"projects/p"}).size() == 3);

  REQUIRE_THAT(store->Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());
  CHECK(Owned(*store, {"projects/p"}).empty());
}

TEMPLATE_TEST_CASE("A deleted job takes nothing from other jobs and from uploads", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->AddUpload("source", {"projects/p"}), IsOk());
  REQUIRE_THAT(store->Commit(NewJob(kJob, "source", "start")), IsOk());
  REQUIRE_THAT(store->Commit(NewJob(kOther, "source")), IsOk());
  REQUIRE_THAT(store->Commit(NewJob("projects/p/jobs/b", "start")), IsOk());

  REQUIRE_THAT(store->Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());

  CHECK(Owned(*store, {"projects/p"}) == Names{"source", "start"});
  CHECK(Owned(*store, {"projects/q"}) == Names{"source"});
}

TEMPLATE_TEST_CASE("An upload belongs to each project of who uploaded it, until the blob goes",
                   "[store]", SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(NewJob(kJob, "blob")), IsOk());
  for (int i = 0; i < 2; ++i) {
    REQUIRE_THAT(store->AddUpload("blob", {"projects/q", "projects/r"}), IsOk());
  }
  REQUIRE_THAT(store->AddUpload("start", {"projects/q"}), IsOk());
  REQUIRE_THAT(store->AddUpload("program", {}), IsOk());
  CHECK(Owned(*store, {"projects/q"}) == Names{"blob", "start"});
  CHECK(Owned(*store, {"projects/r"}) == Names{"blob"});

  REQUIRE_THAT(store->RemoveUploads("blob"), IsOk());

  CHECK(Owned(*store, {"projects/q"}) == Names{"start"});
  CHECK(Owned(*store, {"projects/r"}).empty());
  // A job's is its own.
  CHECK(Owned(*store, {"projects/p"}) == Names{"blob"});
}

TEMPLATE_TEST_CASE("Nothing that a refused Write refers to belongs to anybody", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(NewJob(kJob, "source")), IsOk());

  CHECK_FALSE(store->Commit(NewJob(kJob, "start")).ok());
  CHECK_FALSE(store->Commit(NewCandidate("projects/p/jobs/none", "program")).ok());

  CHECK(Owned(*store, {"projects/p"}) == Names{"source"});
}

TEMPLATE_TEST_CASE("Who was told of a commit of a group finds what it refers to", "[store]",
                   SqliteMaker, FakeMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  store->BeginGroups();
  REQUIRE_THAT(store->Commit(NewJob(kJob, "source")), IsOk());
  REQUIRE_THAT(store->Commit(NewCandidate(kJob, "program")), IsOk());
  absl::Notification is_told;
  store->AfterFlush([&is_told] { is_told.Notify(); });
  is_told.WaitForNotification();

  // Uploads go on beside the groups.
  REQUIRE_THAT(store->AddUpload("blob", {"projects/p"}), IsOk());
  CHECK(Owned(*store, {"projects/p"}) == Names{"source", "program", "blob"});
  store->EndGroups();
}

TEMPLATE_TEST_CASE("A store of version 8 with an open job knows whose its artifacts are", "[store]",
                   SqliteMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(NewJob(kJob, "source", "start")), IsOk());
  REQUIRE_THAT(store->Commit(NewCandidate(kJob, "program")), IsOk());
  REQUIRE_THAT(store->Commit(NewJob(kOther, "blob")), IsOk());
  store.reset();
  {
    soci::session session = Connect(maker);
    ForgetVersion10(session, MakeCandidate(kJob, "program"));
    ForgetVersion9(session);
  }

  store = maker.Reopen(nullptr);

  CHECK(Owned(*store, {"projects/p"}) == Names{"source", "start", "program"});
  CHECK(Owned(*store, {"projects/q"}) == Names{"blob"});
  CHECK(store->LookupJob(kJob)->state() == v1::Job::STATE_PENDING);
  REQUIRE_THAT(store->Commit({.job_name = kOther, .is_job_deleted = true}), IsOk());
  CHECK(Owned(*store, {"projects/q"}).empty());
}

TEMPLATE_TEST_CASE("A store of version 9 shows its candidates, and takes them on", "[store]",
                   SqliteMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  REQUIRE_THAT(store->Commit(NewJob(kJob, "source")), IsOk());
  REQUIRE_THAT(store->Commit(NewCandidate(kJob, "")), IsOk());
  store.reset();
  {
    soci::session session = Connect(maker);
    ForgetVersion10(session, MakeCandidate(kJob, "old"));
  }

  store = maker.Reopen(nullptr);

  const std::string name = std::string(kJob) + "/candidates/c0";
  CHECK(store->LookupCandidate(name)->program().sha256() == "old");
  CHECK(store->ListCandidates({.job = kJob})->candidates.at(0).program().sha256() == "old");
  REQUIRE_THAT(store->Commit(NewCandidate(kJob, "program")), IsOk());
  CHECK(store->LookupCandidate(name)->program().sha256() == "program");
  CHECK(store->ListCandidates({.job = kJob})->candidates.size() == 1);
}

TEMPLATE_TEST_CASE("A store of version 10 knows which of its evaluations are to be superseded",
                   "[store]", SqliteMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  auto store = maker.Open();
  v1::Evaluation unconfirmed;
  unconfirmed.set_skipped_confirmation(true);
  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"f", "whole", {}}}), IsOk());
  REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{"g", "half", unconfirmed}}), IsOk());
  store.reset();
  {
    soci::session session = Connect(maker);
    ForgetVersion11(session);
  }

  store = maker.Reopen(nullptr);

  for (const char* fingerprint : {"f", "g"}) {
    REQUIRE_THAT(store->Commit({.evaluation = EvaluationRecord{fingerprint, "later", {}}}), IsOk());
  }
  CHECK((*store->FindEvaluation("f"))->candidate == "whole");
  CHECK((*store->FindEvaluation("g"))->candidate == "later");
}

}  // namespace mtmc::store
