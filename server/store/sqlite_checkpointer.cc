// SPDX-License-Identifier: Apache-2.0
#include "server/store/sqlite_checkpointer.h"

#include <pthread.h>
#include <sqlite3.h>

#include <memory>
#include <utility>

namespace mtmc::store {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};

using Database = std::unique_ptr<sqlite3, CloseDatabase>;

// Null if it cannot be opened now.
Database Open(const std::string& path) {
  sqlite3* opened = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  Database database(opened);
  if (result != SQLITE_OK) return nullptr;
  // The log is opened by the first that is read.
  const char* read = "SELECT COUNT(*) FROM sqlite_master";
  if (sqlite3_exec(opened, read, nullptr, nullptr, nullptr) != SQLITE_OK) return nullptr;
  return database;
}

}  // namespace

SqliteCheckpointer::SqliteCheckpointer(std::string path, const Options& options)
    : path_(std::move(path)), options_(options), thread_([this] { Run(); }) {}

SqliteCheckpointer::~SqliteCheckpointer() {
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
  }
  thread_.join();
}

bool SqliteCheckpointer::IsDue(int pages) {
  absl::MutexLock lock(&mu_);
  // It has begun anew.
  if (pages < pages_) written_ = tried_ = 0;
  pages_ = pages;
  const bool is_short = pages - written_ <= options_.tail_pages;
  return pages >= options_.most_pages || (pages >= options_.early_pages && is_short);
}

void SqliteCheckpointer::NoteWritten(int pages, int written) {
  absl::MutexLock lock(&mu_);
  // Of a log that has begun anew meanwhile it says nothing.
  if (pages <= pages_) written_ = written;
}

bool SqliteCheckpointer::HasWork() const {
  const bool is_more = pages_ - tried_ > options_.tail_pages;
  // One at a time writes back: a log that is too long is left to whoever commits.
  const bool is_ours = pages_ >= options_.early_pages && pages_ < options_.most_pages;
  return is_ending_ || (is_ours && is_more);
}

void SqliteCheckpointer::Run() {
  pthread_setname_np(pthread_self(), "mtmc-checkpoint");
  Database database;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &SqliteCheckpointer::HasWork));
      if (is_ending_) return;
      tried_ = pages_;
    }
    if (database == nullptr) database = Open(path_);
    int pages = 0;
    int written = 0;
    const bool is_done =
        database != nullptr &&
        sqlite3_wal_checkpoint_v2(database.get(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &pages,
                                  &written) == SQLITE_OK;
    if (is_done) NoteWritten(pages, written);
  }
}

}  // namespace mtmc::store
