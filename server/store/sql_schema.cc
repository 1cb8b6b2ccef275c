// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_schema.h"

namespace mtmc::store {
namespace {

constexpr const char* kVersion1[] = {
    // `position` orders jobs by creation; `last_event` is the sequence of the
    // newest event, so that the next number needs no scan.
    "CREATE TABLE jobs (name TEXT PRIMARY KEY, project TEXT NOT NULL, position BIGINT NOT NULL,"
    " state BIGINT NOT NULL, request_id TEXT, last_event BIGINT NOT NULL,"
    " inspection_key TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE UNIQUE INDEX jobs_by_position ON jobs (position)",
    // NULL request ids do not collide, in both databases.
    "CREATE UNIQUE INDEX jobs_by_request ON jobs (project, request_id)",
    "CREATE TABLE candidates (name TEXT PRIMARY KEY, job TEXT NOT NULL, trial BIGINT NOT NULL,"
    " body TEXT NOT NULL)",
    "CREATE UNIQUE INDEX candidates_by_trial ON candidates (job, trial)",
    "CREATE TABLE events (job TEXT NOT NULL, sequence BIGINT NOT NULL, body TEXT NOT NULL,"
    " PRIMARY KEY (job, sequence))",
    "CREATE TABLE evaluations (fingerprint TEXT PRIMARY KEY, candidate TEXT NOT NULL,"
    " body TEXT NOT NULL)",
    "CREATE TABLE inspections (key TEXT PRIMARY KEY, body TEXT NOT NULL)",
    "CREATE TABLE leases (id TEXT PRIMARY KEY, work TEXT NOT NULL, job TEXT NOT NULL,"
    " candidate TEXT NOT NULL, worker TEXT NOT NULL, instance TEXT NOT NULL,"
    " losses BIGINT NOT NULL, crashes BIGINT NOT NULL, is_lost BIGINT NOT NULL)",
    "CREATE INDEX leases_by_work ON leases (work)",
    "CREATE TABLE workers (name TEXT PRIMARY KEY, is_draining BIGINT NOT NULL,"
    " body TEXT NOT NULL)",
};

constexpr const char* kVersion2[] = {
    // A lease that its worker holds ahead of the one it works on.
    "ALTER TABLE leases ADD COLUMN is_ahead BIGINT NOT NULL DEFAULT 0",
};

constexpr const char* kVersion3[] = {
    // One row: which coordinator owns the jobs.
    "CREATE TABLE owner (id BIGINT PRIMARY KEY, epoch BIGINT NOT NULL, beat BIGINT NOT NULL,"
    " name TEXT NOT NULL, address TEXT NOT NULL)",
    "INSERT INTO owner (id, epoch, beat, name, address) VALUES (1, 0, 0, '', '')",
    // A start looks for the few jobs that have not ended.
    "CREATE INDEX jobs_by_state ON jobs (state)",
};

constexpr const char* kVersion4[] = {
    // Ids of commits whose answer may be lost (SqlJobStore::TryCommit).
    "CREATE TABLE commits (id TEXT PRIMARY KEY)",
};

constexpr const char* kVersion5[] = {
    // What jobs are listed by, as whole numbers; NULL where there is no value
    // (job_order.h). FillOrderKeys writes those of older jobs.
    "ALTER TABLE jobs ADD COLUMN end_order BIGINT",
    "ALTER TABLE jobs ADD COLUMN speedup_order BIGINT",
    // For the retention, which looks for the oldest: what ListJobs orders by.
    "CREATE INDEX jobs_by_end ON jobs ((COALESCE(end_order, 9223372036854775807)),"
    " position DESC)",
    // For the deletion of a job.
    "CREATE INDEX jobs_by_inspection ON jobs (inspection_key)",
    "CREATE INDEX evaluations_by_candidate ON evaluations (candidate)",
};

constexpr const char* kVersion6[] = {
    // What searches learned. `picoseconds` is the time of the kernels, as a whole number.
    "CREATE TABLE records (name TEXT PRIMARY KEY, project TEXT NOT NULL, position BIGINT NOT NULL,"
    " anchor TEXT NOT NULL, picoseconds BIGINT NOT NULL, body TEXT NOT NULL)",
    "CREATE UNIQUE INDEX records_by_position ON records (position)",
    "CREATE INDEX records_by_anchor ON records (project, anchor)",
};

constexpr const char* kVersion7[] = {
    // Whose a lease and a worker's name are.
    "ALTER TABLE leases ADD COLUMN identity TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE workers ADD COLUMN identity TEXT NOT NULL DEFAULT ''",
};

constexpr const char* kVersion8[] = {
    // Limits of projects, NULL where there is none, with what was used; and what jobs hold.
    // `resource` is a QuotaResource.
    "CREATE TABLE quotas (project TEXT NOT NULL, resource BIGINT NOT NULL, allowed BIGINT,"
    " used BIGINT NOT NULL, PRIMARY KEY (project, resource))",
    "CREATE TABLE reservations (job TEXT NOT NULL, resource BIGINT NOT NULL,"
    " project TEXT NOT NULL, amount BIGINT NOT NULL, PRIMARY KEY (job, resource))",
    "CREATE INDEX reservations_by_project ON reservations (project, resource)",
    // Jobs that are open: PENDING, RUNNING, CANCELLING, PAUSED.
    "INSERT INTO reservations (job, resource, project, amount)"
    " SELECT name, 1, project, 1 FROM jobs WHERE state IN (1, 2, 5, 7)",
};

constexpr const char* kVersion9[] = {
    // Whose blobs are: `job` is one that refers to it, or empty for an upload to the project.
    // FillUses writes those of older jobs. The project has a column, since a range of names
    // would depend on the order of texts of a PostgreSQL database.
    "CREATE TABLE artifact_uses (sha256 TEXT NOT NULL, project TEXT NOT NULL, job TEXT NOT NULL,"
    " PRIMARY KEY (sha256, project, job))",
    "CREATE INDEX artifact_uses_by_job ON artifact_uses (job)",
    // Where all projects share what they learned.
    "CREATE INDEX records_of_all_by_anchor ON records (anchor)",
};

constexpr const char* kVersion10[] = {
    // Sequence of the event that has a candidate; its `body` is empty then. 0 in rows of earlier
    // versions, which have a copy.
    "ALTER TABLE candidates ADD COLUMN event BIGINT NOT NULL DEFAULT 0",
};

constexpr const char* kVersion11[] = {
    // EvaluationRecord::rank, so that a later one takes the place of an earlier one, or does not,
    // in one statement. FillRanks writes those of older evaluations.
    "ALTER TABLE evaluations ADD COLUMN rank BIGINT NOT NULL DEFAULT 0",
};

constexpr const char* kVersion12[] = {
    // Whether events that later ones supersede were removed from the log.
    "ALTER TABLE jobs ADD COLUMN is_compacted BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX jobs_to_compact ON jobs (end_order) WHERE is_compacted = 0",
};

constexpr Migration kMigrations[] = {
    {1, kVersion1}, {2, kVersion2},   {3, kVersion3},   {4, kVersion4},
    {5, kVersion5}, {6, kVersion6},   {7, kVersion7},   {8, kVersion8},
    {9, kVersion9}, {10, kVersion10}, {11, kVersion11}, {12, kVersion12},
};

}  // namespace

std::span<const Migration> Migrations() { return kMigrations; }

}  // namespace mtmc::store
