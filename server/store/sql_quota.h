// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/job_store.h"
#include "server/store/quota_ledger.h"

namespace soci {
class session;
}

// The statements of a SqlJobStore on quotas, like sql_statements.h. Private to this folder.
namespace mtmc::store::sql {

// The part of a Write that is of quotas. RESOURCE_EXHAUSTED with reason QUOTA_EXCEEDED.
absl::Status WriteQuotas(soci::session& session, const Write& write);

// A deleted job holds nothing.
void DropReservations(soci::session& session, const std::string& job);

// The reads of JobStore, which has their contracts.
absl::StatusOr<QuotaAccount> FindQuota(soci::session& session, const std::string& job,
                                       QuotaResource resource);
absl::StatusOr<std::vector<ProjectQuota>> ListQuotas(soci::session& session,
                                                     const std::string& project);

// All accounts with what every job holds.
absl::StatusOr<QuotaLedger> ReadLedger(soci::session& session);

}  // namespace mtmc::store::sql
