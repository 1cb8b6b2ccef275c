// SPDX-License-Identifier: Apache-2.0
//
// A connection of SqlJobStore, and how it is used. Private to its sources.
#pragma once

#include <soci/soci.h>

#include <exception>

#include "common/rpc/error.h"
#include "server/store/sql_database.h"
#include "server/store/sql_job_store.h"

namespace mtmc::store {

struct SqlJobStore::Connection {
  soci::session session;
  bool is_open = false;
  bool was_lost = false;

  void Close() {
    is_open = false;
    try {
      session.close();
    } catch (const std::exception&) {
      // It is gone either way.
    }
  }
};

// Runs `body`, which returns a Status, on the connection, opened if need be, and turns
// SOCI's exceptions into a Status.
template <class Body>
absl::Status SqlJobStore::Run(Connection& connection, const Body& body) {
  connection.was_lost = false;
  try {
    if (!connection.is_open) {
      database_->Connect(connection.session);
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

}  // namespace mtmc::store
