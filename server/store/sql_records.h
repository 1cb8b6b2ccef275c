// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/job_store.h"

namespace mtmc::store {
class SqlSession;
}

// The statements of a SqlJobStore on what searches learned, like sql_statements.h. Private to
// this folder.
namespace mtmc::store::sql {

// The part of a Write that is of records.
void WriteRecords(SqlSession& session, const Write& write);

// The reads of JobStore, which has their contracts.
absl::StatusOr<std::vector<v1::TunedRecord>> FindRecords(SqlSession& session,
                                                         const std::string& project,
                                                         const std::vector<std::string>& anchors);
absl::StatusOr<v1::TunedRecord> LookupRecord(SqlSession& session, const std::string& name);
absl::StatusOr<RecordPage> ListRecords(SqlSession& session, const RecordQuery& query);

}  // namespace mtmc::store::sql
