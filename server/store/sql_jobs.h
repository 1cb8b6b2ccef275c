// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

// What is known of the row and the events of a job by whoever alone writes them. A value.
struct JobMark {
  // Sequence of the newest event; 0 if there is none.
  int64_t last_event = 0;
  // What the row is found by, where it was written through this mark.
  std::optional<v1::Job::State> state;
  std::optional<int64_t> end_order;
  // What it holds of quotas, where that was read or written through this mark.
  std::map<QuotaResource, int64_t> held;
  // Digests of the artifacts that were recorded last as the job's through this mark.
  std::string newest_use;
};

JobMark InsertJob(SqlSession& sql, const Write& write);

// Nothing if the job is not there.
std::optional<JobMark> ReadMark(SqlSession& sql, const std::string& name);

// `mark` is that of the job, with this Write's events, and learns what the row has. Indexes whose
// keys the row has already are left alone: with thousands of jobs each is a page to write.
void UpdateJob(SqlSession& sql, const Write& write, JobMark& mark);

// Whether there is neither a job of this name nor, unless it is empty, one in the same
// project with this request id.
bool IsFree(SqlSession& sql, const std::string& name, const std::string& request_id);

// With everything that belongs to it.
void DeleteJob(SqlSession& sql, const std::string& name);

// For jobs of a store whose schema had none.
absl::Status FillOrderKeys(SqlSession& sql);

}  // namespace mtmc::store::sql
