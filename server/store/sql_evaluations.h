// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/job_store.h"

namespace mtmc::store {
class SqlSession;
}

// The statements of a SqlJobStore on evaluations, like sql_statements.h. Private to this folder.
namespace mtmc::store::sql {

// Version of the schema whose ranks FillRanks writes.
inline constexpr int kRanksVersion = 11;

// Unless one of the same rank or a higher one is there.
void WriteEvaluation(SqlSession& session, const EvaluationRecord& record);

// The read of JobStore, which has its contract.
absl::StatusOr<std::optional<EvaluationRecord>> FindEvaluation(SqlSession& session,
                                                               const std::string& fingerprint);

// For evaluations of a store whose schema had none.
absl::Status FillRanks(SqlSession& session);

}  // namespace mtmc::store::sql
