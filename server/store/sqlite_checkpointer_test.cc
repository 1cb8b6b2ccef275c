// SPDX-License-Identifier: Apache-2.0
#include "server/store/sqlite_checkpointer.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/base/temp_dir.h"
#include "common/testing/status_matchers.h"
#include "server/store/sqlite_job_store.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;

constexpr SqliteCheckpointer::Options kLimits{
    .early_pages = 50, .tail_pages = 10, .most_pages = 200};

TEST_CASE("Whoever commits writes back a short rest, or a log that is too long", "[store]") {
  // No database is there, so that the thread does nothing.
  SqliteCheckpointer checkpointer("/nonexistent/mtmc.db", kLimits);
  CHECK_FALSE(checkpointer.IsDue(40));
  CHECK_FALSE(checkpointer.IsDue(90));
  checkpointer.NoteWritten(85, 80);
  CHECK(checkpointer.IsDue(90));
  CHECK_FALSE(checkpointer.IsDue(100));
  CHECK(checkpointer.IsDue(200));
}

TEST_CASE("What was written back of a log says nothing of the next one", "[store]") {
  SqliteCheckpointer checkpointer("/nonexistent/mtmc.db", kLimits);
  CHECK_FALSE(checkpointer.IsDue(60));
  checkpointer.NoteWritten(60, 60);
  CHECK_FALSE(checkpointer.IsDue(1));
  checkpointer.NoteWritten(60, 60);
  CHECK_FALSE(checkpointer.IsDue(60));
}

TEST_CASE("The log of a database begins anew while it is written to", "[store]") {
  const base::TempDir folder = *base::TempDir::Create("checkpointer");
  const std::string path = folder.path() / "mtmc.db";
  const auto store = *SqliteJobStore::Open(path, {.survives_power_loss = false, .log = kLimits});
  REQUIRE_THAT(store->Commit({.job_name = kJob, .new_job = MakeJob(kJob)}), IsOk());
  int64_t num_events = 0;
  const auto commit_one = [&] {
    const std::string text(10'000, 'x');
    ++num_events;
    return store->Commit({.job_name = kJob, .events = {Notice(text)}});
  };
  const auto size = [&] { return std::filesystem::file_size(path + "-wal"); };
  // What it had before is written over, and the file grows no more.
  auto before = size();
  REQUIRE_THAT(commit_one(), IsOk());
  while (size() > before) {
    before = size();
    REQUIRE_THAT(commit_one(), IsOk());
  }

  const auto witness = *SqliteJobStore::Open(path, {});
  CHECK(witness->ReadEvents(kJob, num_events - 1, 10)->size() == 1);
}

}  // namespace
}  // namespace mtmc::store
