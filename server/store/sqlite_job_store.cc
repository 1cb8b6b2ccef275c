// SPDX-License-Identifier: Apache-2.0
#include "server/store/sqlite_job_store.h"

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <exception>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/store/page_token.h"
#include "server/store/sql_schema.h"

namespace mtmc::store {
namespace {

using soci::into;
using soci::use;

constexpr int kPageBytes = 4096;
// Another process reads the file at most (a person with the sqlite3 tool), so
// a lock lasts milliseconds.
constexpr int kBusyTimeoutMs = 5000;

absl::Status FromDatabase(const soci::soci_error& error) {
  const std::string message = error.what();
  const auto* sqlite = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
  // SOCI reports some failed steps without their code; the text is SQLite's own.
  const bool is_full = (sqlite != nullptr && sqlite->result() == 13) ||
                       absl::StrContains(message, "is full") ||
                       absl::StrContains(message, "No space left");
  if (is_full) {
    return rpc::MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                          "the store is full; free space in the data directory and try again");
  }
  if (absl::StrContains(message, "UNIQUE constraint")) {
    return rpc::MakeError(absl::StatusCode::kAlreadyExists, "ALREADY_EXISTS", message);
  }
  return rpc::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
                        absl::StrCat("the store failed, try again: ", message));
}

// Runs `body`, which returns a Status or StatusOr, on the session and turns SOCI's
// exceptions into a Status.
template <class Body>
auto Guard(soci::session& sql, const Body& body) -> decltype(body(sql)) {
  try {
    return body(sql);
  } catch (const soci::soci_error& error) {
    return FromDatabase(error);
  } catch (const std::exception& error) {
    return rpc::MakeError(absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", error.what());
  }
}

template <class Message>
std::string Encode(const Message& message) {
  return absl::Base64Escape(message.SerializeAsString());
}

template <class Message>
absl::StatusOr<Message> Decode(const std::string& body) {
  std::string bytes;
  Message message;
  if (absl::Base64Unescape(body, &bytes) && message.ParseFromString(bytes)) return message;
  return rpc::MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                        absl::StrCat("a stored ", Message::descriptor()->name(),
                                     " cannot be read; restore the data directory"));
}

absl::Status NotFound(const std::string& kind, const std::string& name) {
  return rpc::MakeError(absl::StatusCode::kNotFound, absl::StrCat(kind, "_NOT_FOUND"),
                        absl::StrCat("\"", name, "\" does not exist"), {{"name", name}});
}

// `projects/p/jobs/j` to `projects/p`.
std::string ProjectOf(const std::string& job_name) {
  return job_name.substr(0, job_name.rfind("/jobs/"));
}

std::string EncodeJob(v1::Job job) {
  job.clear_inspection();
  return Encode(job);
}

absl::Status Migrate(soci::session& sql) {
  sql << "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)";
  int version = 0;
  sql << "SELECT COALESCE(MAX(version), 0) FROM schema_version", into(version);
  const int newest = Migrations().back().version;
  if (version > newest) {
    return rpc::MakeError(
        absl::StatusCode::kFailedPrecondition, "STORE_TOO_NEW",
        absl::StrCat("the store has schema ", version, ", this program knows up to ", newest,
                     "; use the newer program or another data directory"));
  }
  for (const Migration& migration : Migrations()) {
    if (migration.version <= version) continue;
    soci::transaction transaction(sql);
    for (const char* statement : migration.statements) sql << statement;
    sql << "INSERT INTO schema_version (version) VALUES (:v)", use(migration.version);
    transaction.commit();
  }
  return absl::OkStatus();
}

void InsertJob(soci::session& sql, const Write& write) {
  const v1::Job& job = *write.new_job;
  const std::string project = ProjectOf(job.name());
  const int state = job.state();
  const std::string body = EncodeJob(job);
  soci::indicator request_kind = write.request_id.empty() ? soci::i_null : soci::i_ok;
  sql << "INSERT INTO jobs (name, project, position, state, request_id, last_event,"
         " inspection_key, body) SELECT :name, :project, COALESCE(MAX(position), 0) + 1, :state,"
         " :request, 0, '', :body FROM jobs",
      use(job.name()), use(project), use(state), use(write.request_id, request_kind), use(body);
}

void UpdateJob(soci::session& sql, const Write& write) {
  const int state = write.job->state();
  const std::string body = EncodeJob(*write.job);
  sql << "UPDATE jobs SET state = :state, body = :body WHERE name = :name", use(state), use(body),
      use(write.job_name);
}

void WriteCandidate(soci::session& sql, const std::string& job, const v1::Candidate& candidate) {
  const int trial = candidate.trial();
  const std::string body = Encode(candidate);
  sql << "INSERT INTO candidates (name, job, trial, body) VALUES (:name, :job, :trial, :body)"
         " ON CONFLICT (name) DO UPDATE SET body = excluded.body",
      use(candidate.name()), use(job), use(trial), use(body);
}

void AppendEvents(soci::session& sql, const Write& write) {
  if (write.events.empty()) return;
  long long sequence = 0;
  sql << "SELECT last_event FROM jobs WHERE name = :name", use(write.job_name), into(sequence);
  for (v1::JobEvent event : write.events) {
    event.set_sequence(++sequence);
    const std::string body = Encode(event);
    sql << "INSERT INTO events (job, sequence, body) VALUES (:job, :sequence, :body)",
        use(write.job_name), use(sequence), use(body);
  }
  sql << "UPDATE jobs SET last_event = :sequence WHERE name = :name", use(sequence),
      use(write.job_name);
}

void DropSuperseded(soci::session& sql, const EvaluationRecord& later) {
  std::string body;
  sql << "SELECT body FROM evaluations WHERE fingerprint = :f", use(later.fingerprint), into(body);
  if (!sql.got_data()) return;
  const auto earlier = Decode<v1::Evaluation>(body);
  if (!earlier.ok() || !later.Supersedes(*earlier)) return;
  sql << "DELETE FROM evaluations WHERE fingerprint = :f", use(later.fingerprint);
}

void WriteResults(soci::session& sql, const Write& write) {
  if (write.evaluation) {
    DropSuperseded(sql, *write.evaluation);
    const std::string body = Encode(write.evaluation->evaluation);
    sql << "INSERT INTO evaluations (fingerprint, candidate, body) VALUES (:f, :c, :b)"
           " ON CONFLICT (fingerprint) DO NOTHING",
        use(write.evaluation->fingerprint), use(write.evaluation->candidate), use(body);
  }
  if (write.inspection) {
    const std::string body = Encode(write.inspection->inspection);
    sql << "INSERT INTO inspections (key, body) VALUES (:k, :b) ON CONFLICT (key) DO NOTHING",
        use(write.inspection->key), use(body);
  }
}

void WriteFleet(soci::session& sql, const Write& write) {
  for (const LeaseRecord& lease : write.leases) {
    const int is_lost = lease.is_lost ? 1 : 0;
    const int is_ahead = lease.is_ahead ? 1 : 0;
    sql << "INSERT INTO leases (id, work, job, candidate, worker, instance, losses, crashes,"
           " is_lost, is_ahead) VALUES (:id, :work, :job, :candidate, :worker, :instance, :losses,"
           " :crashes, :lost, :ahead) ON CONFLICT (id) DO UPDATE SET worker = excluded.worker,"
           " instance = excluded.instance, losses = excluded.losses,"
           " crashes = excluded.crashes, is_lost = excluded.is_lost,"
           " is_ahead = excluded.is_ahead",
        use(lease.id), use(lease.work), use(lease.job), use(lease.candidate), use(lease.worker),
        use(lease.instance), use(lease.losses), use(lease.crashes), use(is_lost), use(is_ahead);
  }
  if (!write.finished_work.empty()) {
    sql << "DELETE FROM leases WHERE work = :work", use(write.finished_work);
  }
  for (const WorkerRecord& worker : write.workers) {
    const int is_draining = worker.is_draining ? 1 : 0;
    const std::string body = Encode(worker.worker);
    sql << "INSERT INTO workers (name, is_draining, body) VALUES (:name, :draining, :body)"
           " ON CONFLICT (name) DO UPDATE SET is_draining = excluded.is_draining,"
           " body = excluded.body",
        use(worker.worker.name()), use(is_draining), use(body);
  }
}

// The bodies of a query's rows, at most `limit`.
std::vector<std::string> Bodies(soci::rowset<std::string>& rows, size_t limit) {
  std::vector<std::string> bodies;
  for (const std::string& body : rows) {
    bodies.push_back(body);
    if (bodies.size() == limit) break;
  }
  return bodies;
}

std::optional<std::string> FindBody(soci::session& sql, const std::string& query,
                                    const std::string& key) {
  std::string body;
  sql << query, use(key), into(body);
  if (!sql.got_data()) return std::nullopt;
  return body;
}

// The part of a WHERE clause that only holds numbers of our own.
std::string StateFilter(const std::vector<v1::Job::State>& states) {
  if (states.empty()) return "";
  return absl::StrCat(" AND state IN (", absl::StrJoin(states, ","), ")");
}

}  // namespace

struct SqliteJobStore::Connection {
  absl::Mutex mu;
  soci::session sql ABSL_GUARDED_BY(mu);
};

SqliteJobStore::SqliteJobStore(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

SqliteJobStore::~SqliteJobStore() = default;

absl::StatusOr<std::unique_ptr<SqliteJobStore>> SqliteJobStore::Open(const std::string& path,
                                                                     const Options& options) {
  auto connection = std::make_unique<Connection>();
  absl::MutexLock lock(&connection->mu);
  MTMC_RETURN_IF_ERROR(Guard(connection->sql, [&](soci::session& sql) -> absl::Status {
    sql.open(soci::sqlite3, absl::StrCat("dbname=\"", path, "\" timeout=", kBusyTimeoutMs / 1000));
    // These four are SQLite's own; PostgreSQL has them on its server.
    std::string mode;
    sql << "PRAGMA journal_mode = WAL", into(mode);
    sql << absl::StrCat("PRAGMA busy_timeout = ", kBusyTimeoutMs), into(mode);
    sql << absl::StrCat("PRAGMA synchronous = ", options.survives_power_loss ? "FULL" : "NORMAL");
    if (options.max_bytes > 0) {
      sql << absl::StrCat("PRAGMA max_page_count = ", options.max_bytes / kPageBytes), into(mode);
    }
    return Migrate(sql);
  }));
  return std::unique_ptr<SqliteJobStore>(new SqliteJobStore(std::move(connection)));
}

absl::Status SqliteJobStore::Commit(const Write& write) {
  absl::MutexLock lock(&connection_->mu);
  const bool touches_job =
      write.new_job || write.job || !write.candidates.empty() || !write.events.empty();
  MTMC_CHECK(!touches_job || !write.job_name.empty());
  return Guard(connection_->sql, [&](soci::session& sql) -> absl::Status {
    // Destroyed before its commit, the transaction is rolled back.
    soci::transaction transaction(sql);
    if (write.new_job) InsertJob(sql, write);
    if (touches_job) {
      int found = 0;
      sql << "SELECT COUNT(*) FROM jobs WHERE name = :name", use(write.job_name), into(found);
      if (found == 0) return NotFound("JOB", write.job_name);
    }
    if (write.job) UpdateJob(sql, write);
    if (!write.inspection_key.empty()) {
      sql << "UPDATE jobs SET inspection_key = :key WHERE name = :name", use(write.inspection_key),
          use(write.job_name);
    }
    for (const v1::Candidate& candidate : write.candidates) {
      WriteCandidate(sql, write.job_name, candidate);
    }
    AppendEvents(sql, write);
    WriteResults(sql, write);
    WriteFleet(sql, write);
    transaction.commit();
    return absl::OkStatus();
  });
}

absl::StatusOr<v1::Job> SqliteJobStore::LookupJob(const std::string& name) {
  absl::MutexLock lock(&connection_->mu);
  return Guard(connection_->sql, [&](soci::session& sql) -> absl::StatusOr<v1::Job> {
    std::string body, key;
    sql << "SELECT body, inspection_key FROM jobs WHERE name = :name", use(name), into(body),
        into(key);
    if (!sql.got_data()) return NotFound("JOB", name);
    MTMC_ASSIGN_OR_RETURN(v1::Job job, Decode<v1::Job>(body));
    const auto inspection = FindBody(sql, "SELECT body FROM inspections WHERE key = :key", key);
    if (inspection) {
      MTMC_ASSIGN_OR_RETURN(*job.mutable_inspection(), Decode<v1::Inspection>(*inspection));
    }
    return job;
  });
}

absl::StatusOr<JobPage> SqliteJobStore::ListJobs(const JobQuery& query) {
  const std::string filter = StateFilter(query.states);
  const std::string listing = absl::StrCat("jobs ", query.project, filter);
  MTMC_ASSIGN_OR_RETURN(const int page_size, EffectivePageSize(query.page_size));
  MTMC_ASSIGN_OR_RETURN(const int64_t before, ParsePageToken(listing, query.page_token,
                                                             std::numeric_limits<int64_t>::max()));
  absl::MutexLock lock(&connection_->mu);
  return Guard(connection_->sql, [&](soci::session& sql) -> absl::StatusOr<JobPage> {
    const auto before_position = static_cast<long long>(before);
    const int limit = page_size + 1;
    soci::rowset<soci::row> rows =
        (sql.prepare << absl::StrCat(
             "SELECT position, body FROM jobs WHERE position < :before", filter,
             " AND (:p = '' OR project = :q) AND (:r = '' OR request_id = :s)"
             " ORDER BY position DESC LIMIT :limit"),
         use(before_position), use(query.project), use(query.project), use(query.request_id),
         use(query.request_id), use(limit));
    JobPage page;
    long long last = 0;
    for (const soci::row& row : rows) {
      if (page.jobs.size() == static_cast<size_t>(page_size)) {
        page.next_page_token = MakePageToken(listing, last);
        break;
      }
      last = row.get<long long>(0);
      MTMC_ASSIGN_OR_RETURN(page.jobs.emplace_back(), Decode<v1::Job>(row.get<std::string>(1)));
    }
    return page;
  });
}

absl::StatusOr<v1::Candidate> SqliteJobStore::LookupCandidate(const std::string& name) {
  absl::MutexLock lock(&connection_->mu);
  return Guard(connection_->sql, [&](soci::session& sql) -> absl::StatusOr<v1::Candidate> {
    const auto body = FindBody(sql, "SELECT body FROM candidates WHERE name = :name", name);
    if (!body) return NotFound("CANDIDATE", name);
    return Decode<v1::Candidate>(*body);
  });
}

absl::StatusOr<CandidatePage> SqliteJobStore::ListCandidates(const CandidateQuery& query) {
  const std::string listing = absl::StrCat("candidates ", query.job);
  MTMC_ASSIGN_OR_RETURN(const int page_size, EffectivePageSize(query.page_size));
  MTMC_ASSIGN_OR_RETURN(const int64_t after, ParsePageToken(listing, query.page_token, -1));
  absl::MutexLock lock(&connection_->mu);
  return Guard(connection_->sql, [&](soci::session& sql) -> absl::StatusOr<CandidatePage> {
    const auto after_trial = static_cast<long long>(after);
    const int limit = page_size + 1;
    soci::rowset<std::string> rows =
        (sql.prepare << "SELECT body FROM candidates WHERE job = :job AND trial > :after"
                        " ORDER BY trial LIMIT :limit",
         use(query.job), use(after_trial), use(limit));
    CandidatePage page;
    for (const std::string& body : Bodies(rows, static_cast<size_t>(limit))) {
      if (page.candidates.size() == static_cast<size_t>(page_size)) {
        page.next_page_token = MakePageToken(listing, page.candidates.back().trial());
        break;
      }
      MTMC_ASSIGN_OR_RETURN(page.candidates.emplace_back(), Decode<v1::Candidate>(body));
    }
    return page;
  });
}

absl::StatusOr<std::vector<v1::JobEvent>> SqliteJobStore::ReadEvents(const std::string& job,
                                                                     int64_t after, int limit) {
  absl::MutexLock lock(&connection_->mu);
  return Guard(
      connection_->sql, [&](soci::session& sql) -> absl::StatusOr<std::vector<v1::JobEvent>> {
        const auto after_sequence = static_cast<long long>(after);
        soci::rowset<std::string> rows =
            (sql.prepare << "SELECT body FROM events WHERE job = :job AND sequence > :after"
                            " ORDER BY sequence LIMIT :limit",
             use(job), use(after_sequence), use(limit));
        std::vector<v1::JobEvent> events;
        for (const std::string& body : Bodies(rows, static_cast<size_t>(limit))) {
          MTMC_ASSIGN_OR_RETURN(events.emplace_back(), Decode<v1::JobEvent>(body));
        }
        return events;
      });
}

absl::StatusOr<std::optional<EvaluationRecord>> SqliteJobStore::FindEvaluation(
    const std::string& fingerprint) {
  absl::MutexLock lock(&connection_->mu);
  return Guard(connection_->sql,
               [&](soci::session& sql) -> absl::StatusOr<std::optional<EvaluationRecord>> {
                 EvaluationRecord record{.fingerprint = fingerprint};
                 std::string body;
                 sql << "SELECT candidate, body FROM evaluations WHERE fingerprint = :f",
                     use(fingerprint), into(record.candidate), into(body);
                 if (!sql.got_data()) return std::nullopt;
                 MTMC_ASSIGN_OR_RETURN(record.evaluation, Decode<v1::Evaluation>(body));
                 return record;
               });
}

absl::StatusOr<std::optional<v1::Inspection>> SqliteJobStore::FindInspection(
    const std::string& key) {
  absl::MutexLock lock(&connection_->mu);
  return Guard(
      connection_->sql, [&](soci::session& sql) -> absl::StatusOr<std::optional<v1::Inspection>> {
        const auto body = FindBody(sql, "SELECT body FROM inspections WHERE key = :key", key);
        if (!body) return std::nullopt;
        return Decode<v1::Inspection>(*body);
      });
}

absl::StatusOr<Fleet> SqliteJobStore::ReadFleet() {
  absl::MutexLock lock(&connection_->mu);
  return Guard(connection_->sql, [&](soci::session& sql) -> absl::StatusOr<Fleet> {
    Fleet fleet;
    soci::rowset<soci::row> workers =
        (sql.prepare << "SELECT is_draining, body FROM workers ORDER BY name");
    for (const soci::row& row : workers) {
      WorkerRecord& worker = fleet.workers.emplace_back();
      worker.is_draining = row.get<long long>(0) != 0;
      MTMC_ASSIGN_OR_RETURN(worker.worker, Decode<v1::Worker>(row.get<std::string>(1)));
    }
    soci::rowset<soci::row> leases =
        (sql.prepare << "SELECT id, work, job, candidate, worker, instance, losses, crashes,"
                        " is_lost, is_ahead FROM leases ORDER BY id");
    for (const soci::row& row : leases) {
      fleet.leases.push_back({.id = row.get<std::string>(0),
                              .work = row.get<std::string>(1),
                              .job = row.get<std::string>(2),
                              .candidate = row.get<std::string>(3),
                              .worker = row.get<std::string>(4),
                              .instance = row.get<std::string>(5),
                              .losses = static_cast<int>(row.get<long long>(6)),
                              .crashes = static_cast<int>(row.get<long long>(7)),
                              .is_lost = row.get<long long>(8) != 0,
                              .is_ahead = row.get<long long>(9) != 0});
    }
    return fleet;
  });
}

}  // namespace mtmc::store
