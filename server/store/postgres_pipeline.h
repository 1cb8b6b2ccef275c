// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "server/store/sql_pipeline.h"

namespace soci {
struct postgresql_session_backend;
}  // namespace soci

namespace mtmc::store {

// The pipeline mode of libpq: the server runs what was sent while more is on its way, and the
// client reads the answers at the end, so that a statement costs its work and not a way to the
// server and back. The server skips what comes after an error, and the transaction is void.
class PostgresPipeline final : public SqlPipeline {
 public:
  // Of a session that is open and outlives it. REQUIRES: HasPostgresPipelines().
  explicit PostgresPipeline(soci::postgresql_session_backend& session) : session_(session) {}

  void Send(soci::statement& statement, std::span<const SqlValue> values) override;
  void Collect() override;

 private:
  // Throws.
  void Refuse(const char* what);

  soci::postgresql_session_backend& session_;
  // Whether something is on its way.
  bool is_sending_ = false;
};

}  // namespace mtmc::store
