// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace mtmc::store {

// One step of the schema's history: the statements that lead from version
// `version - 1` to `version`, run in one transaction. A step that has been
// released never changes; a new one is appended.
struct Migration {
  int version;
  std::span<const char* const> statements;
};

// Every step, oldest first. The SQL is the common part of SQLite and
// PostgreSQL: BIGINT and TEXT columns, records as base64 of their wire form
// (neither database needs to look inside, and text binds alike in both).
std::span<const Migration> Migrations();

}  // namespace mtmc::store
