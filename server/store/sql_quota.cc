// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_quota.h"

#include <soci/soci.h>

#include <map>
#include <utility>

#include "common/base/status_macros.h"
#include "server/store/sql_session.h"

namespace mtmc::store::sql {
namespace {

using soci::into;
using soci::use;

int Number(QuotaResource resource) { return static_cast<int>(resource); }

long long HeldBy(SqlSession& sql, const std::string& job, int resource) {
  long long held = 0;
  const bool is_there =
      sql.Run("SELECT amount FROM reservations WHERE job = :job AND resource = :r", use(job),
              use(resource), into(held));
  return is_there ? held : 0;
}

void SetHeld(SqlSession& sql, const std::string& job, int resource, long long held) {
  if (held == 0) {
    sql.Send("DELETE FROM reservations WHERE job = :job AND resource = :r", {job, resource});
    return;
  }
  const std::string project = ProjectOfJob(job);
  sql.Send(
      "INSERT INTO reservations (job, resource, project, amount) VALUES (:job, :r, :p, :a)"
      " ON CONFLICT (job, resource) DO UPDATE SET amount = excluded.amount",
      {job, resource, project, held});
}

void AddUse(SqlSession& sql, const std::string& project, int resource, long long used) {
  if (used == 0) return;
  sql.Send(
      "INSERT INTO quotas (project, resource, used) VALUES (:p, :r, :u)"
      " ON CONFLICT (project, resource) DO UPDATE SET used = quotas.used + excluded.used",
      {project, resource, used});
}

absl::Status Change(SqlSession& sql, const std::string& job, const QuotaChange& change,
                    JobMark& mark) {
  const int resource = Number(change.resource);
  const std::string project = ProjectOfJob(job);
  const auto [held, is_new] = mark.held.try_emplace(change.resource);
  if (is_new) held->second = HeldBy(sql, job, resource);
  const int64_t before = held->second;
  const QuotaStep step = QuotaStep::Of(change, before);
  const int64_t more = step.held + step.counted - before;
  // What was used is used; only a reservation can be refused.
  if (change.reserved && *change.reserved > 0 && more > 0) {
    MTMC_ASSIGN_OR_RETURN(const QuotaAccount account, FindQuota(sql, job, change.resource));
    if (account.allowed && account.room() < more) {
      return QuotaExceeded(project, change.resource, account);
    }
  }
  if (step.held != before) SetHeld(sql, job, resource, step.held);
  held->second = step.held;
  AddUse(sql, project, resource, step.counted);
  return absl::OkStatus();
}

void SetLimit(SqlSession& sql, const QuotaLimit& limit) {
  const int resource = Number(limit.resource);
  if (limit.is_set) {
    const SqlValue allowed =
        limit.allowed ? SqlValue(static_cast<long long>(*limit.allowed)) : SqlValue();
    sql.Send(
        "INSERT INTO quotas (project, resource, allowed, used) VALUES (:p, :r, :a, 0)"
        " ON CONFLICT (project, resource) DO UPDATE SET allowed = excluded.allowed",
        {limit.project, resource, allowed});
  }
  if (limit.resets_use) {
    sql.Send("UPDATE quotas SET used = 0 WHERE project = :p AND resource = :r",
             {limit.project, resource});
  }
}

}  // namespace

absl::Status WriteQuotas(SqlSession& sql, const Write& write, JobMark& mark) {
  for (const QuotaLimit& limit : write.limits) SetLimit(sql, limit);
  for (const QuotaChange& change : write.quota) {
    MTMC_RETURN_IF_ERROR(Change(sql, write.job_name, change, mark));
  }
  return absl::OkStatus();
}

void DropReservations(SqlSession& sql, const std::string& job) {
  sql.Send("DELETE FROM reservations WHERE job = :job", {job});
}

absl::StatusOr<QuotaAccount> FindQuota(SqlSession& sql, const std::string& job,
                                       QuotaResource resource) {
  const std::string project = ProjectOfJob(job);
  const int number = Number(resource);
  long long allowed = 0;
  long long used = 0;
  soci::indicator kind = soci::i_null;
  QuotaAccount account;
  const bool is_there =
      sql.Run("SELECT allowed, used FROM quotas WHERE project = :p AND resource = :r", use(project),
              use(number), into(allowed, kind), into(used));
  if (!is_there) return account;
  account.used = used;
  if (kind == soci::i_null) return account;
  account.allowed = allowed;
  long long reserved = 0;
  sql.Run(
      "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM reservations"
      " WHERE project = :p AND resource = :r",
      use(project), use(number), into(reserved));
  account.reserved = reserved;
  account.own = HeldBy(sql, job, number);
  return account;
}

absl::StatusOr<std::vector<ProjectQuota>> ListQuotas(SqlSession& sql, const std::string& project) {
  std::map<std::string, ProjectQuota> found;
  const auto account = [&](const std::string& name, long long resource) -> QuotaAccount& {
    ProjectQuota& quota = found[name];
    quota.project = name;
    return quota.accounts[static_cast<QuotaResource>(resource)];
  };
  soci::rowset<soci::row> quotas =
      (sql.prepare << "SELECT project, resource, allowed, used FROM quotas"
                      " WHERE :p = '' OR project = :q",
       use(project), use(project));
  for (const soci::row& row : quotas) {
    QuotaAccount& entry = account(row.get<std::string>(0), row.get<long long>(1));
    if (row.get_indicator(2) == soci::i_ok) entry.allowed = row.get<long long>(2);
    entry.used = row.get<long long>(3);
  }
  // Into variables: SOCI does not know the type of a sum in SQLite.
  std::string holder;
  long long resource = 0;
  long long amount = 0;
  soci::statement held =
      (sql.prepare << "SELECT project, resource, CAST(SUM(amount) AS BIGINT) FROM reservations"
                      " WHERE :p = '' OR project = :q GROUP BY project, resource",
       use(project), use(project), into(holder), into(resource), into(amount));
  held.execute();
  while (held.fetch()) account(holder, resource).reserved = amount;
  std::vector<ProjectQuota> listed;
  for (auto& [name, quota] : found) listed.push_back(std::move(quota));
  return listed;
}

absl::StatusOr<QuotaLedger> ReadLedger(SqlSession& sql) {
  MTMC_ASSIGN_OR_RETURN(const std::vector<ProjectQuota> quotas, ListQuotas(sql, ""));
  std::vector<QuotaLedger::Reservation> reservations;
  soci::rowset<soci::row> rows = (sql.prepare << "SELECT job, resource, amount FROM reservations");
  for (const soci::row& row : rows) {
    reservations.push_back({.job = row.get<std::string>(0),
                            .resource = static_cast<QuotaResource>(row.get<long long>(1)),
                            .amount = row.get<long long>(2)});
  }
  return QuotaLedger(quotas, reservations);
}

}  // namespace mtmc::store::sql
