// SPDX-License-Identifier: Apache-2.0
#include "server/store/sqlite_job_store.h"

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/sql_database.h"
#include "server/store/sql_session.h"

namespace mtmc::store {
namespace {

using soci::into;

constexpr int kPageBytes = 4096;
// Another process reads the file at most (a person with the sqlite3 tool), so
// a lock lasts milliseconds.
constexpr int kBusyTimeoutMs = 5000;
// Of a connection, for pages: those of the inner nodes and of what was written last, for whoever
// reads; there may be a dozen of them, and the system keeps the pages of the file, too.
constexpr int kCacheBytes = 2 << 20;
// The same of the one that writes, which changes the tail of every table and index under load.
constexpr int kWriterCacheBytes = 16 << 20;

class Sqlite final : public SqlDatabase {
 public:
  Sqlite(std::string path, const SqliteJobStore::Options& options)
      : path_(std::move(path)), options_(options), checkpointer_(path_, options.log) {}

  void Connect(SqlSession& session, Use use) const override {
    session.open(soci::sqlite3,
                 absl::StrCat("dbname=\"", path_, "\" timeout=", kBusyTimeoutMs / 1000));
    std::string mode;
    session << "PRAGMA journal_mode = WAL", into(mode);
    session << absl::StrCat("PRAGMA busy_timeout = ", kBusyTimeoutMs), into(mode);
    const int cache = use == Use::kWrites ? kWriterCacheBytes : kCacheBytes;
    session << absl::StrCat("PRAGMA cache_size = -", cache >> 10);
    session << absl::StrCat("PRAGMA synchronous = ",
                            options_.survives_power_loss ? "FULL" : "NORMAL");
    if (options_.max_bytes > 0) {
      session << absl::StrCat("PRAGMA max_page_count = ", options_.max_bytes / kPageBytes),
          into(mode);
    }
    // In place of checkpoints of SQLite's own, for which a commit waits.
    auto* const backend = static_cast<soci::sqlite3_session_backend*>(session.get_backend());
    sqlite_api::sqlite3_wal_hook(backend->conn_, &Sqlite::AfterCommit, &checkpointer_);
  }

  bool IsLost(soci::session& /*session*/) const override { return false; }

  absl::Status ToStatus(const soci::soci_error& error) const override {
    const std::string message = error.what();
    const auto* sqlite = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
    // SOCI reports some failed steps without their code; the text is SQLite's own.
    const bool is_full = (sqlite != nullptr && sqlite->result() == 13) ||
                         absl::StrContains(message, "is full") ||
                         absl::StrContains(message, "No space left");
    if (is_full) {
      return rpc::MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                            "the store is full; free space in the data directory and try again");
    }
    if (absl::StrContains(message, "UNIQUE constraint")) {
      return rpc::MakeError(absl::StatusCode::kAlreadyExists, "ALREADY_EXISTS", message);
    }
    return rpc::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
                          absl::StrCat("the store failed, try again: ", message));
  }

  // One process has the data directory.
  void LockSchema(soci::session& /*session*/) const override {}

  // A transaction that writes excludes all others.
  std::string RowLock() const override { return ""; }

  bool CanLoseCommits() const override { return false; }

  void Announce(SqlSession& /*session*/, const std::set<std::string>& /*jobs*/) const override {}

 private:
  // Whoever has committed, with the pages that the log has now.
  static int AfterCommit(void* checkpointer, sqlite_api::sqlite3* database, const char* name,
                         int pages) {
    auto& self = *static_cast<SqliteCheckpointer*>(checkpointer);
    if (!self.IsDue(pages)) return SQLITE_OK;
    int written = 0;
    const int result = sqlite_api::sqlite3_wal_checkpoint_v2(
        database, name, SQLITE_CHECKPOINT_PASSIVE, &pages, &written);
    if (result == SQLITE_OK) self.NoteWritten(pages, written);
    return SQLITE_OK;
  }

  const std::string path_;
  const SqliteJobStore::Options options_;
  mutable SqliteCheckpointer checkpointer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteJobStore>> SqliteJobStore::Open(const std::string& path,
                                                                     const Options& options) {
  auto store =
      std::unique_ptr<SqliteJobStore>(new SqliteJobStore(std::make_unique<Sqlite>(path, options)));
  MTMC_RETURN_IF_ERROR(store->SqlJobStore::Open());
  return store;
}

}  // namespace mtmc::store
