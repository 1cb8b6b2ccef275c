// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/store/job_store.h"

namespace mtmc::store {
class SqlSession;
}

// The statements that write the table of jobs. Private to this folder: each runs within
// a transaction of the caller's and may throw what SOCI throws.
namespace mtmc::store::sql {

// Version of the schema whose order keys FillOrderKeys writes.
inline constexpr int kOrderKeysVersion = 5;

void InsertJob(SqlSession& sql, const Write& write);

// With the sequence of its newest event.
void UpdateJob(SqlSession& sql, const Write& write, int64_t last_event);

// Whether there is neither a job of this name nor, unless it is empty, one in the same
// project with this request id.
bool IsFree(SqlSession& sql, const std::string& name, const std::string& request_id);

// With everything that belongs to it.
void DeleteJob(SqlSession& sql, const std::string& name);

// For jobs of a store whose schema had none.
absl::Status FillOrderKeys(SqlSession& sql);

}  // namespace mtmc::store::sql
