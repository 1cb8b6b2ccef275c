// SPDX-License-Identifier: Apache-2.0
//
// A connection of SqlJobStore, and how it is used. Private to its sources.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/sql_database.h"
#include "server/store/sql_job_store.h"
#include "server/store/sql_session.h"
#include "server/store/sql_statements.h"

namespace mtmc::store {

struct SqlJobStore::Connection {
  SqlSession session;
  SqlDatabase::Use use = SqlDatabase::Use::kReads;
  bool is_open = false;
  bool was_lost = false;
  // Of the one that writes, while commits are grouped and nobody else writes.
  sql::JobMarks marks;

  void Close() {
    is_open = false;
    marks.clear();
    session.Forget();
    try {
      session.close();
    } catch (const std::exception&) {
      // It is gone either way.
    }
  }
};

// More are closed after use: each costs a process of a PostgreSQL server.
inline constexpr size_t kMaxIdleReaders = 8;

// Runs `body`, which returns a Status, on the connection, opened if need be, and turns
// SOCI's exceptions into a Status.
template <class Body>
absl::Status SqlJobStore::Run(Connection& connection, const Body& body) {
  connection.was_lost = false;
  try {
    if (!connection.is_open) {
      database_->Connect(connection.session, connection.use);
      connection.is_open = true;
    }
    return body(connection.session);
  } catch (const soci::soci_error& error) {
    const absl::Status status = database_->ToStatus(error);
    connection.was_lost = connection.is_open && database_->IsLost(connection.session);
    if (!connection.is_open || connection.was_lost) connection.Close();
    return status;
  } catch (const std::exception& error) {
    return rpc::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", error.what());
  }
}

template <class T, class Body>
absl::StatusOr<T> SqlJobStore::Read(const std::string& subject, const Body& body) {
  absl::StatusOr<T> result = absl::UnknownError("not read");
  const auto read = [&](SqlSession& session) {
    result = body(session);
    return absl::OkStatus();
  };
  if (IsGroupThread()) {
    MTMC_RETURN_IF_ERROR(subject.empty() ? queue_->SettleAll() : queue_->Settle(subject));
  }
  std::unique_ptr<Connection> connection;
  {
    absl::MutexLock lock(&read_mu_);
    if (!readers_.empty()) {
      connection = std::move(readers_.back());
      readers_.pop_back();
    }
  }
  if (connection == nullptr) connection = std::make_unique<Connection>();
  absl::Status status = Run(*connection, read);
  // It may have died while it was idle.
  if (!status.ok() && connection->was_lost) status = Run(*connection, read);
  absl::MutexLock lock(&read_mu_);
  if (readers_.size() < kMaxIdleReaders) readers_.push_back(std::move(connection));
  if (!status.ok()) return status;
  return result;
}

}  // namespace mtmc::store
