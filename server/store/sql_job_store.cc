// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_job_store.h"

#include <soci/soci.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/id.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/sql_connection.h"
#include "server/store/sql_database.h"
#include "server/store/sql_evaluations.h"
#include "server/store/sql_lineage.h"
#include "server/store/sql_quota.h"
#include "server/store/sql_records.h"
#include "server/store/sql_statements.h"
#include "server/store/sql_uses.h"

namespace mtmc::store {
namespace {

// Writes whose commit was not answered and that nobody repeats are forgotten, the
// memory of all together stays below a megabyte.
constexpr size_t kMaxDoubts = 1000;

// Writes with equal digests write the same.
std::string DigestOf(const Write& write) {
  base::Sha256Builder hash;
  const auto add = [&hash](const std::string& part) {
    hash.Append(absl::StrCat(part.size(), ":"));
    hash.Append(part);
  };
  add(write.job_name);
  add(write.request_id);
  add(write.new_job ? write.new_job->SerializeAsString() : "");
  add(write.job ? write.job->SerializeAsString() : "");
  add(write.inspection_key);
  for (const v1::JobEvent& event : write.events) add(event.SerializeAsString());
  if (write.evaluation) add(write.evaluation->evaluation.SerializeAsString());
  for (const LeaseRecord& lease : write.leases) {
    add(absl::StrCat(lease.id, " ", lease.losses, " ", lease.crashes, " ", lease.is_lost, " ",
                     lease.is_ahead, " ", lease.identity));
  }
  add(write.finished_work);
  for (const LearnedRecord& learned : write.learned) add(learned.record.SerializeAsString());
  for (const std::string& name : write.refuted) add(name);
  if (write.superseded) add(absl::StrCat("compacted ", absl::StrJoin(*write.superseded, " ")));
  add(write.is_job_deleted ? "deleted" : "");
  for (const QuotaChange& change : write.quota) {
    add(absl::StrCat(static_cast<int>(change.resource), " ", change.reserved.value_or(-1), " ",
                     change.used));
  }
  for (const QuotaLimit& limit : write.limits) {
    add(absl::StrCat(limit.project, " ", static_cast<int>(limit.resource), " ", limit.is_set, " ",
                     limit.allowed.value_or(-1), " ", limit.resets_use));
  }
  for (const WorkerRecord& worker : write.workers) {
    add(absl::StrCat(worker.is_draining, " ", worker.identity, " ",
                     worker.worker.SerializeAsString()));
  }
  for (const std::string& name : write.forgotten_workers) add(name);
  return hash.Finish().sha256_hex;
}

}  // namespace

SqlJobStore::SqlJobStore(std::unique_ptr<const SqlDatabase> database)
    : database_(std::move(database)), writer_(std::make_unique<Connection>()) {
  writer_->use = SqlDatabase::Use::kWrites;
}

SqlJobStore::~SqlJobStore() = default;

absl::Status SqlJobStore::Open() {
  absl::MutexLock lock(&write_mu_);
  return Run(*writer_, [this](SqlSession& session) {
    SqlTransaction transaction(session);
    database_->LockSchema(session);
    const absl::Status status = sql::Migrate(session);
    if (status.ok()) transaction.Commit();
    return status;
  });
}

absl::Status SqlJobStore::CommitTaking(Write& write) {
  return queue_ == nullptr ? Commit(write) : AddToGroup(write);
}

absl::Status SqlJobStore::Commit(const Write& write) {
  MTMC_CHECK((!write.new_job && !ChangesJob(write)) || !write.job_name.empty());
  if (queue_ != nullptr) {
    Write copy = write;
    return AddToGroup(copy);
  }
  absl::MutexLock lock(&write_mu_);
  bool is_in_doubt = false;
  const absl::Status status = TryCommit(write, is_in_doubt);
  // It may have died while it was idle, and nothing of the Write was committed.
  if (!status.ok() && writer_->was_lost && !is_in_doubt) return TryCommit(write, is_in_doubt);
  return status;
}

absl::Status SqlJobStore::TryCommit(const Write& write, bool& is_in_doubt) {
  is_in_doubt = false;
  std::string id;
  bool is_repeated = false;
  bool was_written = false;
  const std::vector<std::string> settled = settled_;
  if (database_->CanLoseCommits()) {
    const auto doubt = doubts_.empty() ? doubts_.end() : doubts_.find(DigestOf(write));
    is_repeated = doubt != doubts_.end();
    id = is_repeated ? doubt->second : base::MakeUuid4();
  }
  const absl::Status status = Run(*writer_, [&](SqlSession& session) -> absl::Status {
    SqlTransaction transaction(session);
    if (!id.empty() && !sql::WriteCommitId(session, settled, id)) {
      was_written = true;
      return absl::OkStatus();
    }
    if (write.epoch != 0 && write.epoch != sql::ReadEpoch(session, database_->RowLock())) {
      return NotOwner();
    }
    // Somebody else may write between two of these.
    sql::JobMarks marks;
    MTMC_RETURN_IF_ERROR(sql::Apply(session, write, marks).status());
    if (!write.events.empty() || write.is_job_deleted) {
      database_->Announce(session, {write.job_name});
    }
    session.Collect();
    is_in_doubt = true;
    transaction.Commit();
    is_in_doubt = false;
    return absl::OkStatus();
  });
  is_in_doubt = is_in_doubt && writer_->was_lost && !id.empty();
  if (is_in_doubt) {
    if (doubts_.size() >= kMaxDoubts) doubts_.erase(doubts_.begin());
    doubts_[DigestOf(write)] = id;
  } else if (status.ok() && !id.empty()) {
    if (!was_written) settled_.clear();
    settled_.push_back(id);
    if (is_repeated) doubts_.erase(DigestOf(write));
  }
  return status;
}

absl::StatusOr<v1::Job> SqlJobStore::LookupJob(const std::string& name) {
  return Read<v1::Job>(JobSubject(name),
                       [&](SqlSession& session) { return sql::LookupJob(session, name); });
}

absl::StatusOr<v1::Job::State> SqlJobStore::LookupState(const std::string& job) {
  return Read<v1::Job::State>(JobSubject(job),
                              [&](SqlSession& session) { return sql::LookupState(session, job); });
}

absl::StatusOr<JobPage> SqlJobStore::ListJobs(const JobQuery& query) {
  return Read<JobPage>("", [&](SqlSession& session) { return sql::ListJobs(session, query); });
}

absl::StatusOr<v1::Candidate> SqlJobStore::LookupCandidate(const std::string& name) {
  const std::string job = name.substr(0, name.rfind("/candidates/"));
  return Read<v1::Candidate>(
      JobSubject(job), [&](SqlSession& session) { return sql::LookupCandidate(session, name); });
}

absl::StatusOr<CandidatePage> SqlJobStore::ListCandidates(const CandidateQuery& query) {
  return Read<CandidatePage>(JobSubject(query.job), [&](SqlSession& session) {
    return sql::ListCandidates(session, query);
  });
}

absl::StatusOr<std::vector<v1::JobEvent>> SqlJobStore::ReadEvents(const std::string& job,
                                                                  int64_t after, int limit) {
  return Read<std::vector<v1::JobEvent>>(JobSubject(job), [&](SqlSession& session) {
    return sql::ReadEvents(session, job, after, limit);
  });
}

absl::StatusOr<std::vector<Compaction>> SqlJobStore::FindCompactions(absl::Time end, int limit) {
  return Read<std::vector<Compaction>>(
      "", [&](SqlSession& session) { return sql::FindCompactions(session, end, limit); });
}

absl::StatusOr<std::vector<v1::JobEvent>> SqlJobStore::ReadLineage(const std::string& job) {
  return Read<std::vector<v1::JobEvent>>(
      JobSubject(job), [&](SqlSession& session) { return sql::ReadLineage(session, job); });
}

absl::StatusOr<std::optional<EvaluationRecord>> SqlJobStore::FindEvaluation(
    const std::string& fingerprint) {
  return Read<std::optional<EvaluationRecord>>(
      EvaluationSubject(fingerprint),
      [&](SqlSession& session) { return sql::FindEvaluation(session, fingerprint); });
}

absl::StatusOr<std::optional<v1::Inspection>> SqlJobStore::FindInspection(const std::string& key) {
  return Read<std::optional<v1::Inspection>>(InspectionSubject(key), [&](SqlSession& session) {
    return sql::FindInspection(session, key);
  });
}

absl::StatusOr<std::vector<v1::TunedRecord>> SqlJobStore::FindRecords(
    const std::string& project, const std::vector<std::string>& anchors) {
  return Read<std::vector<v1::TunedRecord>>(RecordsSubject(), [&](SqlSession& session) {
    return sql::FindRecords(session, project, anchors);
  });
}

absl::StatusOr<v1::TunedRecord> SqlJobStore::LookupRecord(const std::string& name) {
  return Read<v1::TunedRecord>(
      RecordsSubject(), [&](SqlSession& session) { return sql::LookupRecord(session, name); });
}

absl::StatusOr<RecordPage> SqlJobStore::ListRecords(const RecordQuery& query) {
  return Read<RecordPage>(RecordsSubject(),
                          [&](SqlSession& session) { return sql::ListRecords(session, query); });
}

absl::StatusOr<QuotaAccount> SqlJobStore::FindQuota(const std::string& job,
                                                    QuotaResource resource) {
  if (IsGroupThread()) {
    MTMC_RETURN_IF_ERROR(OpenLedger());
    return ledger_->Find(job, resource);
  }
  return Read<QuotaAccount>(
      "", [&](SqlSession& session) { return sql::FindQuota(session, job, resource); });
}

absl::StatusOr<std::vector<ProjectQuota>> SqlJobStore::ListQuotas(const std::string& project) {
  if (IsGroupThread()) {
    MTMC_RETURN_IF_ERROR(OpenLedger());
    return ledger_->List(project);
  }
  return Read<std::vector<ProjectQuota>>(
      "", [&](SqlSession& session) { return sql::ListQuotas(session, project); });
}

absl::StatusOr<Fleet> SqlJobStore::ReadFleet() {
  return Read<Fleet>("", [](SqlSession& session) { return sql::ReadFleet(session); });
}

absl::StatusOr<OwnerRecord> SqlJobStore::ReadOwner() {
  return Read<OwnerRecord>("", [](SqlSession& session) { return sql::ReadOwner(session); });
}

absl::Status SqlJobStore::ReplaceOwner(const OwnerRecord& seen, const OwnerRecord& next) {
  // Twice, if its connection was lost: the second finds that the first was written, and
  // says ABORTED; whoever looks again sees that it is what it wanted.
  return Read<bool>("",
                    [&](SqlSession& session) -> absl::StatusOr<bool> {
                      MTMC_RETURN_IF_ERROR(sql::ReplaceOwner(session, seen, next));
                      return true;
                    })
      .status();
}

absl::StatusOr<std::set<std::string>> SqlJobStore::FindOwned(
    const std::vector<std::string>& sha256s, const std::vector<std::string>& projects) {
  using Owned = std::set<std::string>;
  return Read<Owned>("", [&](SqlSession& session) {
    return absl::StatusOr<Owned>(sql::FindOwned(session, sha256s, projects));
  });
}

template <class Body>
absl::Status SqlJobStore::WriteUses(const Body& body) {
  const auto write = [&body](SqlSession& session) {
    SqlTransaction transaction(session);
    body(session);
    session.Collect();
    transaction.Commit();
    return absl::OkStatus();
  };
  // The one that writes, because SQLite has one at a time.
  absl::MutexLock lock(&write_mu_);
  const absl::Status status = Run(*writer_, write);
  // It may have died while it was idle.
  if (!status.ok() && writer_->was_lost) return Run(*writer_, write);
  return status;
}

absl::Status SqlJobStore::AddUpload(const std::string& sha256,
                                    const std::vector<std::string>& projects) {
  if (projects.empty()) return absl::OkStatus();
  return WriteUses([&](SqlSession& session) { sql::AddUpload(session, sha256, projects); });
}

absl::Status SqlJobStore::RemoveUploads(const std::string& sha256) {
  return WriteUses([&](SqlSession& session) { sql::RemoveUploads(session, sha256); });
}

}  // namespace mtmc::store
