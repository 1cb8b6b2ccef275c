// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/sql_job_store.h"

namespace mtmc::store {

// The channel of PostgreSQL on which each transaction tells the names of jobs with new
// events, and what stands between two of them.
inline constexpr char kEventChannel[] = "mtmc_events";
inline constexpr char kEventSeparator[] = "\n";

// How to reach a database, checked and completed: `address` is a URI
// (postgresql://user@host/database) or a list of key=value, as libpq takes them. A
// connection that is silent is given up after seconds, unless `address` says otherwise.
// INVALID_ARGUMENT with reason INVALID_STORE; FAILED_PRECONDITION with reason
// LIBPQ_MISSING.
absl::StatusOr<std::string> PostgresConnectionInfo(const std::string& address);

// What of that may be shown: `user@host:port/database`.
absl::StatusOr<std::string> ShownPostgresAddress(const std::string& address);

// A SqlJobStore in a PostgreSQL database, version 13 or later, which several
// coordinators may share. Outlives any number of restarts of the server: calls are
// UNAVAILABLE meanwhile.
class PostgresJobStore final : public SqlJobStore {
 public:
  // Connects and brings the schema up to date. UNAVAILABLE with reason
  // STORE_UNAVAILABLE and PostgreSQL's own words when it cannot be reached,
  // FAILED_PRECONDITION with reason STORE_TOO_NEW when a later version of this program
  // made the tables, STORE_TOO_OLD for an old server; those of PostgresConnectionInfo.
  static absl::StatusOr<std::unique_ptr<PostgresJobStore>> Open(const std::string& address);

 private:
  using SqlJobStore::SqlJobStore;
};

}  // namespace mtmc::store
