// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/v1/job.pb.h"
#include "server/store/job_store.h"

namespace mtmc::store {
class SqlSession;
}

// Which events of a log still say something. Private to this folder.
namespace mtmc::store::sql {

// JobStore::ReadLineage. Of a trial there are some five events, of which one is of use: the
// others are told apart by their first bytes, and neither fetched nor parsed. A restart reads
// the lineage of every open job.
absl::StatusOr<std::vector<v1::JobEvent>> ReadLineage(SqlSession& session, const std::string& job);

// JobStore::FindCompactions. Bodies are not fetched.
absl::StatusOr<std::vector<Compaction>> FindCompactions(SqlSession& session, absl::Time end,
                                                        int limit);

// Removes the events, and says of the job that its log is compacted.
void CompactLog(SqlSession& session, const std::string& job,
                const std::vector<int64_t>& superseded);

}  // namespace mtmc::store::sql
