// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/sql_job_store.h"
#include "server/store/sqlite_checkpointer.h"

namespace mtmc::store {

// A SqlJobStore in one SQLite file: nothing to install and nothing to run, for one
// coordinator. A commit takes well under a millisecond without the disk's own wait.
class SqliteJobStore final : public SqlJobStore {
 public:
  struct Options {
    // Behaviour. True: a commit waits for the disk (synchronous=FULL) and
    // survives a power failure. False: it is in the kernel's hands
    // (synchronous=NORMAL) and survives only the death of the process, by any
    // signal; for tests.
    bool survives_power_loss = true;
    // Most bytes of the database; 0 means what the disk has.
    int64_t max_bytes = 0;
    // Performance. When the log of changes is written back to the database.
    SqliteCheckpointer::Options log = {};
  };

  // Opens or makes the database at `path` and brings its schema up to date.
  // FAILED_PRECONDITION with reason STORE_TOO_NEW when a later version of this
  // program wrote it.
  static absl::StatusOr<std::unique_ptr<SqliteJobStore>> Open(const std::string& path,
                                                              const Options& options);

 private:
  using SqlJobStore::SqlJobStore;
};

}  // namespace mtmc::store
