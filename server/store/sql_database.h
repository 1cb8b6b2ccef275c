// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"

namespace soci {
class session;
class soci_error;
}  // namespace soci

namespace mtmc::store {

class SqlSession;

// What each database of SqlJobStore does in its own way. Private to this folder:
// its functions may throw what SOCI throws, and SqlJobStore catches it.
// Thread-safe; a session belongs to one thread at a time.
class SqlDatabase {
 public:
  // What a connection is for: many read, one writes.
  enum class Use { kReads, kWrites };

  virtual ~SqlDatabase() = default;

  // Opens a session, which is closed.
  virtual void Connect(SqlSession& session, Use use) const = 0;

  // Whether a session that failed is of no use any more, and what it had begun and
  // not committed is undone.
  virtual bool IsLost(soci::session& session) const = 0;

  virtual absl::Status ToStatus(const soci::soci_error& error) const = 0;

  // Keeps other processes out while the schema is brought up to date, until the
  // session ends or commits.
  virtual void LockSchema(soci::session& session) const = 0;

  // Keeps a row that a query ends with from being changed until the transaction ends.
  virtual std::string RowLock() const = 0;

  // Whether a connection can be lost while it commits, so that nobody knows whether it
  // did.
  virtual bool CanLoseCommits() const = 0;

  // Tells listeners of other processes, once the transaction commits, that each of `jobs` has
  // new events.
  virtual void Announce(SqlSession& session, const std::set<std::string>& jobs) const = 0;
};

}  // namespace mtmc::store
