// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::store {
class SqlSession;
}

namespace mtmc::store::sql {

// JobStore::ReadLineage. Of a trial there are some five events, of which one is of use: the
// others are told apart by their first bytes, and neither fetched nor parsed. A restart reads
// the lineage of every open job.
absl::StatusOr<std::vector<v1::JobEvent>> ReadLineage(SqlSession& session, const std::string& job);

}  // namespace mtmc::store::sql
