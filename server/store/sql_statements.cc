// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_statements.h"

#include <soci/soci.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/artifact_uses.h"
#include "server/store/page_token.h"
#include "server/store/sql_codec.h"
#include "server/store/sql_evaluations.h"
#include "server/store/sql_jobs.h"
#include "server/store/sql_lineage.h"
#include "server/store/sql_quota.h"
#include "server/store/sql_records.h"
#include "server/store/sql_schema.h"
#include "server/store/sql_session.h"
#include "server/store/sql_uses.h"

namespace mtmc::store::sql {
namespace {

using soci::into;
using soci::use;

// The step that made the table `owner`.
constexpr int kOwnerVersion = 3;

// What tells of a candidate: an event or, of one that an earlier schema wrote, a body of its own.
struct StoredCandidate {
  absl::StatusOr<v1::Candidate> Read() const {
    if (event.empty()) return Decode<v1::Candidate>(body);
    MTMC_ASSIGN_OR_RETURN(v1::JobEvent told, Decode<v1::JobEvent>(event));
    return std::move(*told.mutable_candidate());
  }

  std::string body;
  std::string event;
};

void WriteCandidate(SqlSession& sql, const std::string& job, const v1::Candidate& candidate,
                    JobMark& mark) {
  const auto event = static_cast<long long>(mark.last_event);
  const int trial = candidate.trial();
  sql.Send(
      "INSERT INTO candidates (name, job, trial, body, event)"
      " VALUES (:name, :job, :trial, '', :event)"
      " ON CONFLICT (name) DO UPDATE SET body = '', event = excluded.event",
      {candidate.name(), job, trial, event});
  // A candidate comes some three times in a row with its artifacts.
  std::string uses;
  for (const v1::Digest* digest : ArtifactsOf(candidate)) uses += digest->sha256();
  if (uses == mark.newest_use) return;
  mark.newest_use = std::move(uses);
  WriteUse(sql, job, candidate);
}

// Only the column has an event's own sequence.
void AppendEvents(SqlSession& sql, const Write& write, JobMark& mark) {
  for (const v1::JobEvent& event : write.events) {
    const long long last = ++mark.last_event;
    const std::string body = Encode(event);
    sql.Send("INSERT INTO events (job, sequence, body) VALUES (:job, :sequence, :body)",
             {write.job_name, last, body});
    if (event.has_candidate()) WriteCandidate(sql, write.job_name, event.candidate(), mark);
  }
}

void WriteResults(SqlSession& sql, const Write& write) {
  if (write.evaluation) WriteEvaluation(sql, *write.evaluation);
  if (write.inspection) {
    const std::string body = Encode(write.inspection->inspection);
    sql.Send("INSERT INTO inspections (key, body) VALUES (:k, :b) ON CONFLICT (key) DO NOTHING",
             {write.inspection->key, body});
  }
}

void WriteFleet(SqlSession& sql, const Write& write) {
  for (const LeaseRecord& lease : write.leases) {
    const int is_lost = lease.is_lost ? 1 : 0;
    const int is_ahead = lease.is_ahead ? 1 : 0;
    sql.Send(
        "INSERT INTO leases (id, work, job, candidate, worker, instance, losses, crashes,"
        " is_lost, is_ahead, identity) VALUES (:id, :work, :job, :candidate, :worker,"
        " :instance, :losses, :crashes, :lost, :ahead, :identity) ON CONFLICT (id) DO UPDATE "
        "SET worker = excluded.worker,"
        " instance = excluded.instance, losses = excluded.losses,"
        " crashes = excluded.crashes, is_lost = excluded.is_lost,"
        " is_ahead = excluded.is_ahead, identity = excluded.identity",
        {lease.id, lease.work, lease.job, lease.candidate, lease.worker, lease.instance,
         lease.losses, lease.crashes, is_lost, is_ahead, lease.identity});
  }
  if (!write.finished_work.empty()) {
    sql.Send("DELETE FROM leases WHERE work = :work", {write.finished_work});
  }
  for (const WorkerRecord& worker : write.workers) {
    const int is_draining = worker.is_draining ? 1 : 0;
    const std::string body = Encode(worker.worker);
    sql.Send(
        "INSERT INTO workers (name, is_draining, identity, body)"
        " VALUES (:name, :draining, :identity, :body)"
        " ON CONFLICT (name) DO UPDATE SET is_draining = excluded.is_draining,"
        " identity = excluded.identity, body = excluded.body",
        {worker.worker.name(), is_draining, worker.identity, body});
  }
  for (const std::string& name : write.forgotten_workers) {
    sql.Send("DELETE FROM workers WHERE name = :name", {name});
  }
}

// Null if the job is not there.
JobMark* FindMark(SqlSession& sql, const std::string& job, JobMarks& marks) {
  const auto known = marks.find(job);
  if (known != marks.end()) return &known->second;
  const std::optional<JobMark> read = ReadMark(sql, job);
  return read ? &(marks[job] = *read) : nullptr;
}

// Another process may have brought the store up to date while this one has it open; `owner`
// is where that one is reached then.
absl::Status CheckVersion(int version, const std::string& owner = "") {
  const int newest = Migrations().back().version;
  if (version <= newest) return absl::OkStatus();
  return rpc::MakeError(
      absl::StatusCode::kFailedPrecondition, "STORE_TOO_NEW",
      absl::StrCat("the store has schema ", version, ", this program knows up to ", newest,
                   "; use the newer program or another data directory"),
      {{"owner", owner}});
}

}  // namespace

absl::Status Migrate(SqlSession& session) {
  session << "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)";
  int version = 0;
  session.Run("SELECT COALESCE(MAX(version), 0) FROM schema_version", into(version));
  MTMC_RETURN_IF_ERROR(CheckVersion(version));
  // An owner of an earlier release goes on meanwhile, and would leave out what this one adds.
  // First of all, since its transactions take this row before they write to a job.
  if (version >= kOwnerVersion && version < Migrations().back().version) {
    session << "UPDATE owner SET epoch = epoch + 1, beat = 0, name = '', address = ''"
               " WHERE id = 1";
  }
  for (const Migration& migration : Migrations()) {
    if (migration.version <= version) continue;
    for (const char* statement : migration.statements) session << statement;
    if (migration.version == kOrderKeysVersion) MTMC_RETURN_IF_ERROR(FillOrderKeys(session));
    if (migration.version == kUsesVersion) MTMC_RETURN_IF_ERROR(FillUses(session));
    if (migration.version == kRanksVersion) MTMC_RETURN_IF_ERROR(FillRanks(session));
    session.Run("INSERT INTO schema_version (version) VALUES (:v)", use(migration.version));
  }
  return absl::OkStatus();
}

int64_t ReadEpoch(SqlSession& session, const std::string& lock) {
  long long epoch = 0;
  session.Run(absl::StrCat("SELECT epoch FROM owner WHERE id = 1", lock), into(epoch));
  return epoch;
}

bool WriteCommitId(SqlSession& session, const std::vector<std::string>& settled,
                   const std::string& id) {
  for (const std::string& done : settled) {
    session.Send("DELETE FROM commits WHERE id = :id", {done});
  }
  int one = 0;
  return session.Run("INSERT INTO commits (id) VALUES (:id) ON CONFLICT DO NOTHING RETURNING 1",
                     use(id), into(one));
}

absl::StatusOr<OwnerRecord> ReadOwner(SqlSession& session) {
  OwnerRecord owner;
  long long epoch = 0;
  long long beat = 0;
  int version = 0;
  session.Run(
      "SELECT epoch, beat, name, address, (SELECT MAX(version) FROM schema_version) FROM owner"
      " WHERE id = 1",
      into(epoch), into(beat), into(owner.name), into(owner.address), into(version));
  MTMC_RETURN_IF_ERROR(CheckVersion(version, owner.address));
  owner.epoch = epoch;
  owner.beat = beat;
  return owner;
}

absl::Status ReplaceOwner(SqlSession& session, const OwnerRecord& seen, const OwnerRecord& next) {
  const auto epoch = static_cast<long long>(next.epoch);
  const auto beat = static_cast<long long>(next.beat);
  const auto seen_epoch = static_cast<long long>(seen.epoch);
  const auto seen_beat = static_cast<long long>(seen.beat);
  soci::statement update =
      (session.prepare << "UPDATE owner SET epoch = :epoch, beat = :beat, name = :name,"
                          " address = :address WHERE id = 1 AND epoch = :e AND beat = :b AND"
                          " name = :n",
       use(epoch), use(beat), use(next.name), use(next.address), use(seen_epoch), use(seen_beat),
       use(seen.name));
  update.execute(true);
  if (update.get_affected_rows() == 1) return absl::OkStatus();
  return OwnerChanged();
}

absl::StatusOr<int64_t> Apply(SqlSession& session, const Write& write, JobMarks& marks) {
  JobMark of_none;
  JobMark* mark = &of_none;
  if (write.new_job) {
    mark = &(marks[write.job_name] = InsertJob(session, write));
  } else if (ChangesJob(write)) {
    mark = FindMark(session, write.job_name, marks);
    if (mark == nullptr) return NotFound("JOB", write.job_name);
  }
  AppendEvents(session, write, *mark);
  if (write.job) UpdateJob(session, write, *mark);
  if (!write.inspection_key.empty()) {
    session.Send("UPDATE jobs SET inspection_key = :key WHERE name = :name",
                 {write.inspection_key, write.job_name});
  }
  WriteResults(session, write);
  WriteFleet(session, write);
  WriteRecords(session, write);
  MTMC_RETURN_IF_ERROR(WriteQuotas(session, write, *mark));
  if (write.superseded) CompactLog(session, write.job_name, *write.superseded);
  const int64_t last_event = mark->last_event;
  if (write.is_job_deleted) {
    DeleteJob(session, write.job_name);
    marks.erase(write.job_name);
  }
  return last_event;
}

absl::StatusOr<v1::Candidate> LookupCandidate(SqlSession& sql, const std::string& name) {
  StoredCandidate stored;
  const bool is_there = sql.Run(
      "SELECT c.body, COALESCE(e.body, '') FROM candidates c LEFT JOIN events e"
      " ON e.job = c.job AND e.sequence = c.event WHERE c.name = :name",
      use(name), into(stored.body), into(stored.event));
  if (!is_there) return NotFound("CANDIDATE", name);
  return stored.Read();
}

absl::StatusOr<CandidatePage> ListCandidates(SqlSession& sql, const CandidateQuery& query) {
  const std::string listing = absl::StrCat("candidates ", query.job);
  MTMC_ASSIGN_OR_RETURN(const int page_size, EffectivePageSize(query.page_size));
  MTMC_ASSIGN_OR_RETURN(const int64_t after, ParsePageToken(listing, query.page_token, -1));
  const auto after_trial = static_cast<long long>(after);
  const int limit = page_size + 1;
  StoredCandidate row;
  std::vector<StoredCandidate> rows;
  sql.ForEach(
      "SELECT c.body, COALESCE(e.body, '') FROM candidates c LEFT JOIN events e"
      " ON e.job = c.job AND e.sequence = c.event WHERE c.job = :job AND c.trial > :after"
      " ORDER BY c.trial LIMIT :limit",
      [&] { rows.push_back(row); }, use(query.job), use(after_trial), use(limit), into(row.body),
      into(row.event));
  CandidatePage page;
  for (const StoredCandidate& stored : rows) {
    if (page.candidates.size() == static_cast<size_t>(page_size)) {
      page.next_page_token = MakePageToken(listing, page.candidates.back().trial());
      break;
    }
    MTMC_ASSIGN_OR_RETURN(page.candidates.emplace_back(), stored.Read());
  }
  return page;
}

absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(SqlSession& sql, const std::string& job,
                                                     int64_t after, int limit) {
  const auto after_sequence = static_cast<long long>(after);
  long long sequence = 0;
  std::string body;
  absl::Status status;
  std::vector<v1::JobEvent> events;
  const auto take = [&] {
    auto event = Decode<v1::JobEvent>(body);
    status.Update(event.status());
    if (!status.ok()) return;
    events.push_back(*std::move(event));
    events.back().set_sequence(sequence);
  };
  sql.ForEach(
      "SELECT sequence, body FROM events WHERE job = :job AND sequence > :after"
      " ORDER BY sequence LIMIT :limit",
      take, use(job), use(after_sequence), use(limit), into(sequence), into(body));
  if (!status.ok()) return status;
  return events;
}

absl::StatusOr<std::optional<v1::Inspection>> FindInspection(SqlSession& sql,
                                                             const std::string& key) {
  const auto body = FindBody(sql, "SELECT body FROM inspections WHERE key = :key", key);
  if (!body) return std::nullopt;
  return Decode<v1::Inspection>(*body);
}

absl::StatusOr<Fleet> ReadFleet(SqlSession& sql) {
  Fleet fleet;
  soci::rowset<soci::row> workers =
      (sql.prepare << "SELECT is_draining, identity, body FROM workers ORDER BY name");
  for (const soci::row& row : workers) {
    WorkerRecord& worker = fleet.workers.emplace_back();
    worker.is_draining = row.get<long long>(0) != 0;
    worker.identity = row.get<std::string>(1);
    MTMC_ASSIGN_OR_RETURN(worker.worker, Decode<v1::Worker>(row.get<std::string>(2)));
  }
  soci::rowset<soci::row> leases =
      (sql.prepare << "SELECT id, work, job, candidate, worker, instance, losses, crashes,"
                      " is_lost, is_ahead, identity FROM leases ORDER BY id");
  for (const soci::row& row : leases) {
    fleet.leases.push_back({.id = row.get<std::string>(0),
                            .work = row.get<std::string>(1),
                            .job = row.get<std::string>(2),
                            .candidate = row.get<std::string>(3),
                            .worker = row.get<std::string>(4),
                            .instance = row.get<std::string>(5),
                            .identity = row.get<std::string>(10),
                            .losses = static_cast<int>(row.get<long long>(6)),
                            .crashes = static_cast<int>(row.get<long long>(7)),
                            .is_lost = row.get<long long>(8) != 0,
                            .is_ahead = row.get<long long>(9) != 0});
  }
  return fleet;
}

}  // namespace mtmc::store::sql
