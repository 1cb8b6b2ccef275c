// SPDX-License-Identifier: Apache-2.0
//
// Commits that share a transaction, in SQLite.
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"
#include "server/store/sqlite_job_store.h"
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
  // Delays after which a flush was asked for.
  std::vector<absl::Duration> asked;

  explicit Groups(const SqliteJobStore::Options& options = {}) {
    store = *SqliteJobStore::Open(path, options);
    witness = *SqliteJobStore::Open(path, {});
    store->GroupCommits([this](absl::Duration delay) { asked.push_back(delay); });
  }

  absl::Status Note(const std::string& text) {
    return store->Commit({.job_name = kJob, .events = {Notice(text)}});
  }

  absl::Status NewJob() { return store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}); }

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

TEST_CASE("Nobody hears of a group before it is on disk, but for who commits", "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  REQUIRE_THAT(groups.Note("a"), IsOk());
  bool has_run = false;
  groups.store->AfterFlush([&has_run] { has_run = true; });
  CHECK_THAT(groups.witness->LookupJob(kJob).status(), StatusIs(absl::StatusCode::kNotFound));
  CHECK(groups.store->ReadEvents(kJob, 0, 10)->size() == 1);
  CHECK_FALSE(has_run);
  CHECK(groups.asked == std::vector<absl::Duration>{absl::ZeroDuration()});

  groups.store->Flush();
  CHECK(groups.Survivors() == Texts{"a"});
  CHECK(has_run);
}

TEST_CASE("What waits for a flush runs in its order, and at once with nothing to flush",
          "[store]") {
  Groups groups;
  std::string order;
  groups.store->AfterFlush([&order] { order += "0"; });
  CHECK(order == "0");
  REQUIRE_THAT(groups.NewJob(), IsOk());
  groups.store->AfterFlush([&order] { order += "1"; });
  groups.store->AfterFlush([&order] { order += "2"; });
  CHECK(order == "0");
  groups.store->Flush();
  CHECK(order == "012");
}

TEST_CASE("A Write that is refused leaves the others of its group", "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  REQUIRE_THAT(groups.Note("a"), IsOk());
  CHECK_THAT(groups.NewJob(), StatusIs(absl::StatusCode::kAlreadyExists));
  CHECK_THAT(groups.store->Commit({.job_name = "projects/p/jobs/none", .events = {Notice("x")}}),
             StatusIs(absl::StatusCode::kNotFound));
  REQUIRE_THAT(groups.Note("b"), IsOk());
  groups.store->Flush();
  CHECK(groups.Survivors() == Texts{"a", "b"});
}

TEST_CASE("A group that meets a full database keeps what it had", "[store]") {
  Groups groups({.max_bytes = 400 * 1024});
  REQUIRE_THAT(groups.NewJob(), IsOk());
  Texts written;
  absl::Status status;
  while (status.ok()) {
    const std::string text = std::to_string(written.size()) + std::string(10'000, 'x');
    status = groups.Note(text);
    if (status.ok()) written.push_back(text);
  }
  CHECK_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK(written.size() > 10);
  // Also for who commits.
  CHECK(groups.store->ReadEvents(kJob, 0, 1000)->size() == written.size());
  groups.store->Flush();
  CHECK(groups.Survivors() == written);
}

TEST_CASE("A group that cannot be written waits, and so does what is told of it", "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  groups.store->Flush();
  groups.asked.clear();
  REQUIRE_THAT(groups.Note("a"), IsOk());
  bool has_run = false;
  groups.store->AfterFlush([&has_run] { has_run = true; });
  {
    const FileLimit limit(std::filesystem::file_size(groups.path + "-wal"));
    groups.store->Flush();
    CHECK(groups.Survivors().empty());
    CHECK_FALSE(has_run);
    // The second time because it failed.
    REQUIRE(groups.asked.size() == 2);
    CHECK(groups.asked[1] > absl::ZeroDuration());
    // Who commits goes on from it.
    CHECK(groups.store->ReadEvents(kJob, 0, 10)->size() == 1);
  }
  REQUIRE_THAT(groups.Note("b"), IsOk());
  groups.store->Flush();
  CHECK(groups.Survivors() == Texts{"a", "b"});
  CHECK(has_run);
}

TEST_CASE("Ending the groups writes the last one", "[store]") {
  Groups groups;
  REQUIRE_THAT(groups.NewJob(), IsOk());
  bool has_run = false;
  groups.store->AfterFlush([&has_run] { has_run = true; });
  groups.store->GroupCommits(nullptr);
  CHECK(has_run);
  REQUIRE_THAT(groups.Note("a"), IsOk());
  CHECK(groups.Survivors() == Texts{"a"});
}

}  // namespace
}  // namespace mtmc::store
