// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/job_store.h"
#include "server/store/quota_ledger.h"
#include "server/store/sql_jobs.h"

namespace mtmc::store {
class SqlSession;
}

// The statements of a SqlJobStore on quotas, like sql_statements.h. Private to this folder.
namespace mtmc::store::sql {

// The part of a Write that is of quotas. `mark` is that of its job. RESOURCE_EXHAUSTED with reason
// QUOTA_EXCEEDED.
absl::Status WriteQuotas(SqlSession& session, const Write& write, JobMark& mark);

// A deleted job holds nothing.
void DropReservations(SqlSession& session, const std::string& job);

// The reads of JobStore, which has their contracts.
absl::StatusOr<QuotaAccount> FindQuota(SqlSession& session, const std::string& job,
                                       QuotaResource resource);
absl::StatusOr<std::vector<ProjectQuota>> ListQuotas(SqlSession& session,
                                                     const std::string& project);

// All accounts with what every job holds.
absl::StatusOr<QuotaLedger> ReadLedger(SqlSession& session);

}  // namespace mtmc::store::sql
