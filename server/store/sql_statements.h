// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/job_store.h"
#include "server/store/owner_store.h"
#include "server/store/sql_jobs.h"

namespace mtmc::store {
class SqlSession;
}

// The statements of a SqlJobStore, in the SQL that SQLite and PostgreSQL share. Each
// runs on an open session and may throw what SOCI throws. Private to this folder.
namespace mtmc::store::sql {

// Brings the schema up to date. FAILED_PRECONDITION with reason STORE_TOO_NEW.
absl::Status Migrate(SqlSession& session);

// The epoch of the owner, which stays until the transaction ends: `lock` is what the
// database wants at the end of such a query.
int64_t ReadEpoch(SqlSession& session, const std::string& lock);

// False if a transaction with this id was committed before; the one under way is void
// then. Waits for one that is still under way. Removes ids that are `settled`.
bool WriteCommitId(SqlSession& session, const std::vector<std::string>& settled,
                   const std::string& id);

absl::StatusOr<OwnerRecord> ReadOwner(SqlSession& session);

// ABORTED with reason OWNER_CHANGED unless `seen` is recorded.
absl::Status ReplaceOwner(SqlSession& session, const OwnerRecord& seen, const OwnerRecord& next);

// By name.
using JobMarks = std::unordered_map<std::string, JobMark>;

// All of a Write, but for its epoch, within a transaction of the caller's. Returns the sequence
// of the newest event of its job, if it touches one. `marks` are of jobs that nobody else has
// written since; what is missing is read. After an error, or if the transaction is not committed,
// they are void.
absl::StatusOr<int64_t> Apply(SqlSession& session, const Write& write, JobMarks& marks);

// The reads of JobStore, which has their contracts.
absl::StatusOr<v1::Job> LookupJob(SqlSession& session, const std::string& name);
absl::StatusOr<v1::Job::State> LookupState(SqlSession& session, const std::string& job);
absl::StatusOr<JobPage> ListJobs(SqlSession& session, const JobQuery& query);
absl::StatusOr<v1::Candidate> LookupCandidate(SqlSession& session, const std::string& name);
absl::StatusOr<CandidatePage> ListCandidates(SqlSession& session, const CandidateQuery& query);
absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(SqlSession& session, const std::string& job,
                                                     int64_t after, int limit);
absl::StatusOr<std::optional<v1::Inspection>> FindInspection(SqlSession& session,
                                                             const std::string& key);
absl::StatusOr<Fleet> ReadFleet(SqlSession& session);

}  // namespace mtmc::store::sql
