// SPDX-License-Identifier: Apache-2.0
//
// Commits that share a transaction.
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"
#include "server/store/sqlite_job_store.h"
#include "server/store/store_makers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

// A store whose commits are grouped, and another one on the same file, that sees what
// survives.
struct Groups {
  base::TempDir folder = *base::TempDir::Create("groups");
  std::string path = folder.path() / "mtmc.db";
  std::unique_ptr<SqliteJobStore> store;
  std::unique_ptr<SqliteJobStore> witness;

  explicit Groups(const SqliteJobStore::Options& options = {}) {
    store = *SqliteJobStore::Open(path, options);
    witness = *SqliteJobStore::Open(path, {});
    store->BeginGroups();
  }

  absl::Status Note(const std::string& text) {
    return store->Commit({.job_name = kJob, .events = {Notice(text)}});
  }

  absl::Status NewJob() { return store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}); }

  // Until all that was committed survives.
  void Flush() {
    absl::Notification is_flushed;
    store->AfterFlush([&is_flushed] { is_flushed.Notify(); });
    is_flushed.WaitForNotification();
  }

  // Texts of the events that survive a crash.
  std::vector<std::string> Survivors() {
    std::vector<std::string> texts;
    const auto events = witness->ReadEvents(kJob, 0, 1000);
    for (const v1::JobEvent& event : *events) texts.push_back(event.notice());
    return texts;
  }
};

// No file of this process may grow beyond so much, as on a disk that is full.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }

  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

using Texts = std::vector<std::string>;

TEST_CASE("A thread whose commits are grouped reads what it committed", "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  CHECK(groups.store->LookupJob(kJob)->name() == kJob);
  for (const char* text : {"a", "b", "c"}) {
    REQUIRE_THAT(groups.Note(text), IsOk());
    CHECK(groups.store->ReadEvents(kJob, 0, 10)->back().notice() == text);
  }
  EvaluationRecord record{.fingerprint = "f", .candidate = "c"};
  record.evaluation.set_worker("w");
  REQUIRE_THAT(groups.store->Commit({.evaluation = record}), IsOk());
  CHECK((*groups.store->FindEvaluation("f"))->evaluation.worker() == "w");
  // Who reads has waited for it.
  CHECK(groups.Survivors() == Texts{"a", "b", "c"});
}

TEST_CASE("What is told after a flush survives", "[store]") {
  Groups groups;
  int64_t told = 0;
  groups.store->AfterFlush([&told] { ++told; });
  CHECK(told == 1);
  REQUIRE_THAT(groups.NewJob(), IsOk());
  for (int i = 0; i < 200; ++i) {
    REQUIRE_THAT(groups.Note(std::to_string(i)), IsOk());
    if (i % 20 == 0) {
      groups.Flush();
      CHECK(groups.Survivors().size() == static_cast<size_t>(i) + 1);
    }
  }
}

TEST_CASE("A Write that is refused leaves the others of its group", "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  REQUIRE_THAT(groups.Note("a"), IsOk());
  CHECK_THAT(groups.NewJob(), StatusIs(absl::StatusCode::kAlreadyExists));
  CHECK_THAT(groups.store->Commit({.job_name = "projects/p/jobs/none", .events = {Notice("x")}}),
             StatusIs(absl::StatusCode::kNotFound));
  REQUIRE_THAT(groups.Note("b"), IsOk());
  groups.Flush();
  CHECK(groups.Survivors() == Texts{"a", "b"});
}

TEMPLATE_TEST_CASE("Groups keep the contract of JobStore in every database", "[store]", SqliteMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  store->BeginGroups();
  const auto note = [&store](const std::string& text) {
    return store->Commit({.job_name = kJob, .events = {Notice(text)}});
  };
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob), .request_id = "r"}),
               IsOk());
  CHECK_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}),
             StatusIs(absl::StatusCode::kAlreadyExists));
  CHECK_THAT(note("a"), IsOk());
  CHECK_THAT(store->Commit({.job_name = "projects/p/jobs/none", .events = {Notice("x")}}),
             StatusIs(absl::StatusCode::kNotFound));
  const LeaseRecord lease{.id = "l", .work = "w", .job = kJob, .worker = "workers/w"};
  CHECK_THAT(store->Commit({.leases = {lease}}), IsOk());
  CHECK_THAT(note("b"), IsOk());
  CHECK(store->ReadEvents(kJob, 0, 10)->size() == 2);
  CHECK(store->ReadFleet()->leases.size() == 1);
  CHECK_THAT(store->Commit({.finished_work = "w"}), IsOk());
  store->EndGroups();

  // By who does not wait for it.
  const auto events = *store->ReadEvents(kJob, 0, 10);
  REQUIRE(events.size() == 2);
  CHECK(events[0].sequence() == 1);
  CHECK(events[1].sequence() == 2);
  CHECK(events[1].notice() == "b");
  CHECK(store->ReadFleet()->leases.empty());
}

TEMPLATE_TEST_CASE("A store tells of the events that survive, once, in order, with their numbers",
                   "[store]", SqliteMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  std::vector<std::string> told;
  REQUIRE(store->SendEvents([&](const std::string& job, const std::vector<v1::JobEvent>& events) {
    if (events.empty()) told.push_back(job + " is to be read");
    for (const v1::JobEvent& event : events) {
      told.push_back(std::to_string(event.sequence()) + " " + event.notice());
    }
  }));
  store->BeginGroups();
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob), .events = {Notice("a")}}),
               IsOk());
  REQUIRE_THAT(store->Commit({.job_name = kJob, .events = {Notice("b"), Notice("c")}}), IsOk());
  // No news of a job.
  REQUIRE_THAT(store->Commit({.finished_work = "w"}), IsOk());
  REQUIRE_THAT(store->Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());
  store->EndGroups();

  CHECK(told == Texts{"1 a", "2 b", "3 c", std::string(kJob) + " is to be read"});
}

TEST_CASE("A store tells of nothing that was not written", "[store]") {
  Groups groups({.max_bytes = 400 * 1024});
  groups.store->EndGroups();
  std::atomic<size_t> num_told = 0;
  groups.store->SendEvents([&](const std::string&, const std::vector<v1::JobEvent>& events) {
    num_told += events.size();
  });
  groups.store->BeginGroups();
  REQUIRE_THAT(groups.NewJob(), IsOk());
  for (absl::Status status; status.ok();) status = groups.Note(std::string(10'000, 'x'));
  groups.store->EndGroups();

  CHECK(num_told == groups.Survivors().size());
}

TEST_CASE("A request id that is taken in the same group is refused", "[store]") {
  Groups groups;
  const auto create = [&](const std::string& name) {
    return groups.store->Commit(
        {.job_name = name, .new_job = MakeJob(name), .request_id = "request"});
  };
  REQUIRE_THAT(create(kJob), IsOk());
  CHECK_THAT(create("projects/p/jobs/b"), StatusIs(absl::StatusCode::kAlreadyExists));
  CHECK_THAT(create("projects/q/jobs/b"), IsOk());
}

TEST_CASE("A job that is deleted in a group is gone for who commits, and its name is free",
          "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  REQUIRE_THAT(groups.store->Commit({.job_name = kJob, .is_job_deleted = true}), IsOk());
  CHECK_THAT(groups.Note("late"), StatusIs(absl::StatusCode::kNotFound));
  REQUIRE_THAT(groups.NewJob(), IsOk());
  REQUIRE_THAT(groups.Note("a"), IsOk());
  groups.Flush();
  CHECK(groups.Survivors() == Texts{"a"});
}

TEST_CASE("Jobs of an earlier process are known to a group", "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  groups.store->EndGroups();
  groups.store->BeginGroups();
  CHECK_THAT(groups.NewJob(), StatusIs(absl::StatusCode::kAlreadyExists));
  REQUIRE_THAT(groups.Note("a"), IsOk());
}

TEMPLATE_TEST_CASE("Events go on after those that another wrote between two groups", "[store]",
                   SqliteMaker, PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  const auto other = maker.Reopen(nullptr);
  store->BeginGroups();
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob), .events = {Notice("a")}}),
               IsOk());
  store->EndGroups();
  REQUIRE_THAT(other->Commit({.job_name = kJob, .events = {Notice("b")}}), IsOk());
  store->BeginGroups();
  REQUIRE_THAT(store->Commit({.job_name = kJob, .events = {Notice("c")}}), IsOk());
  store->EndGroups();

  const auto events = store->ReadEvents(kJob, 0, 10);
  REQUIRE(events->size() == 3);
  CHECK(events->back().sequence() == 3);
  CHECK(events->back().notice() == "c");
}

TEMPLATE_TEST_CASE("A job is found by the state that its newest record has", "[store]", SqliteMaker,
                   PostgresMaker) {
  TestType maker;
  if (!maker.IsThere()) return;
  const auto store = maker.Open();
  const auto record = [&](v1::Job::State state, double speedup) {
    v1::Job job = MakeJob(kJob);
    job.set_state(state);
    job.set_best_speedup(speedup);
    return store->Commit({.job_name = kJob, .job = job, .events = {Notice("recorded")}});
  };
  const auto count = [&](v1::Job::State state) {
    return store->ListJobs({.states = {state}})->jobs.size();
  };
  store->BeginGroups();
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}), IsOk());
  REQUIRE_THAT(record(v1::Job::STATE_RUNNING, 1), IsOk());
  REQUIRE_THAT(record(v1::Job::STATE_RUNNING, 2), IsOk());
  CHECK(store->LookupJob(kJob)->best_speedup() == 2);
  CHECK(count(v1::Job::STATE_RUNNING) == 1);
  REQUIRE_THAT(record(v1::Job::STATE_SUCCEEDED, 2), IsOk());
  CHECK(count(v1::Job::STATE_RUNNING) == 0);
  CHECK(count(v1::Job::STATE_SUCCEEDED) == 1);
  store->EndGroups();
}

TEST_CASE("A group that meets a full database refuses more, and loses nothing that survived",
          "[store]") {
  Groups groups({.max_bytes = 400 * 1024});
  REQUIRE_THAT(groups.NewJob(), IsOk());
  Texts written;
  absl::Status status;
  while (status.ok()) {
    const std::string text = std::to_string(written.size()) + std::string(10'000, 'x');
    status = groups.Note(text);
    if (!status.ok()) break;
    // As a search does, which acts on what it committed.
    status = groups.store->ReadEvents(kJob, 0, 1).status();
    if (status.ok()) written.push_back(text);
  }
  CHECK_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK(written.size() > 10);
  CHECK_THAT(groups.Note("more"), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK(groups.Survivors() == written);
}

TEST_CASE("A group that cannot be written waits, and so does what is told of it", "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  groups.Flush();
  std::atomic<bool> has_run = false;
  {
    const FileLimit limit(std::filesystem::file_size(groups.path + "-wal"));
    REQUIRE_THAT(groups.Note("a"), IsOk());
    groups.store->AfterFlush([&has_run] { has_run = true; });
    // What it read would be older than what it committed.
    CHECK_FALSE(groups.store->ReadEvents(kJob, 0, 10).ok());
    CHECK_FALSE(groups.Note("refused").ok());
    CHECK(groups.Survivors().empty());
    CHECK_FALSE(has_run);
  }
  groups.Flush();
  CHECK(has_run);
  REQUIRE_THAT(groups.Note("b"), IsOk());
  groups.Flush();
  CHECK(groups.Survivors() == Texts{"a", "b"});
}

TEST_CASE("Ending the groups writes the last one", "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  bool has_run = false;
  groups.store->AfterFlush([&has_run] { has_run = true; });
  groups.store->EndGroups();
  CHECK(has_run);
  REQUIRE_THAT(groups.Note("a"), IsOk());
  CHECK(groups.Survivors() == Texts{"a"});
}

}  // namespace
}  // namespace mtmc::store
