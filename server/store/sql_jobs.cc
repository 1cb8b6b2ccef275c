// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_jobs.h"

#include <soci/soci.h>

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "server/store/job_order.h"
#include "server/store/page_token.h"
#include "server/store/sql_codec.h"
#include "server/store/sql_quota.h"
#include "server/store/sql_session.h"
#include "server/store/sql_statements.h"
#include "server/store/sql_uses.h"

namespace mtmc::store::sql {
namespace {

using soci::into;
using soci::use;

std::string EncodeJob(const v1::Job& job) {
  if (!job.has_inspection()) return Encode(job);
  v1::Job without = job;
  without.clear_inspection();
  return Encode(without);
}

// What a job is ordered by; NULL where the job has no such value.
SqlValue KeyOf(const v1::Job& job, JobOrder::Field field) {
  const std::optional<int64_t> key = OrderKey(job, field);
  return key ? SqlValue(static_cast<long long>(*key)) : SqlValue();
}

SqlValue EndOf(const v1::Job& job) { return KeyOf(job, JobOrder::Field::kEndTime); }

SqlValue SpeedupOf(const v1::Job& job) { return KeyOf(job, JobOrder::Field::kBestSpeedup); }

// The part of a WHERE clause that only holds numbers of our own.
std::string StateFilter(const std::vector<v1::Job::State>& states) {
  if (states.empty()) return "";
  return absl::StrCat(" AND state IN (", absl::StrJoin(states, ","), ")");
}

// The expression that jobs are ordered by: of a job without the value one that comes
// after all others.
std::string OrderExpression(const JobOrder& order) {
  if (order.field == JobOrder::Field::kCreateTime) return "position";
  const char* column = order.field == JobOrder::Field::kEndTime ? "end_order" : "speedup_order";
  return absl::StrCat("COALESCE(", column, ", ", LastKey(order), ")");
}

}  // namespace

JobMark InsertJob(SqlSession& sql, const Write& write) {
  const v1::Job& job = *write.new_job;
  const std::string project = ProjectOfJob(job.name());
  const int state = job.state();
  const std::string body = EncodeJob(job);
  const SqlValue request = write.request_id.empty() ? SqlValue() : SqlValue(write.request_id);
  // PostgreSQL takes a parameter of a SELECT for text unless it is told.
  sql.Send(
      "INSERT INTO jobs (name, project, position, state, request_id, last_event,"
      " inspection_key, body, end_order, speedup_order) SELECT :name, :project, "
      "COALESCE(MAX(position), 0) + 1,"
      " CAST(:state AS BIGINT), :request, 0, '', :body, CAST(:ended AS BIGINT),"
      " CAST(:speedup AS BIGINT) FROM jobs",
      {job.name(), project, state, request, body, EndOf(job), SpeedupOf(job)});
  WriteUses(sql, job);
  return {.state = job.state(), .end_order = OrderKey(job, JobOrder::Field::kEndTime)};
}

std::optional<JobMark> ReadMark(SqlSession& sql, const std::string& name) {
  long long last = 0;
  const bool is_there = sql.Run(
      "SELECT COALESCE((SELECT MAX(sequence) FROM events WHERE job = :job), 0) FROM jobs"
      " WHERE name = :name",
      use(name), use(name), into(last));
  if (!is_there) return std::nullopt;
  return JobMark{.last_event = last};
}

void UpdateJob(SqlSession& sql, const Write& write, JobMark& mark) {
  const int state = write.job->state();
  const std::string body = EncodeJob(*write.job);
  const auto last = static_cast<long long>(mark.last_event);
  const std::optional<int64_t> end_order = OrderKey(*write.job, JobOrder::Field::kEndTime);
  if (mark.state == write.job->state() && mark.end_order == end_order) {
    sql.Send(
        "UPDATE jobs SET body = :body, last_event = :last, speedup_order = :speedup"
        " WHERE name = :name",
        {body, last, SpeedupOf(*write.job), write.job_name});
    return;
  }
  mark.state = write.job->state();
  mark.end_order = end_order;
  sql.Send(
      "UPDATE jobs SET state = :state, body = :body, last_event = :last, end_order = :ended,"
      " speedup_order = :speedup WHERE name = :name",
      {state, body, last, EndOf(*write.job), SpeedupOf(*write.job), write.job_name});
}

bool IsFree(SqlSession& sql, const std::string& name, const std::string& request_id) {
  const std::string project = ProjectOfJob(name);
  int taken = 0;
  sql.Run("SELECT COUNT(*) FROM jobs WHERE name = :name", use(name), into(taken));
  if (taken > 0 || request_id.empty()) return taken == 0;
  sql.Run("SELECT COUNT(*) FROM jobs WHERE project = :project AND request_id = :id", use(project),
          use(request_id), into(taken));
  return taken == 0;
}

void DeleteJob(SqlSession& sql, const std::string& name) {
  sql.Send(
      "DELETE FROM evaluations WHERE candidate IN"
      " (SELECT name FROM candidates WHERE job = :job)",
      {name});
  sql.Send("DELETE FROM candidates WHERE job = :job", {name});
  sql.Send("DELETE FROM events WHERE job = :job", {name});
  DeleteUses(sql, name);
  DropReservations(sql, name);
  std::string inspection;
  sql.Run("SELECT inspection_key FROM jobs WHERE name = :name", use(name), into(inspection));
  sql.Send("DELETE FROM jobs WHERE name = :name", {name});
  sql.Send(
      "DELETE FROM inspections WHERE key = :key AND NOT EXISTS"
      " (SELECT 1 FROM jobs WHERE inspection_key = :other)",
      {inspection, inspection});
}

absl::Status FillOrderKeys(SqlSession& sql) {
  std::vector<std::string> names;
  soci::rowset<std::string> rows = (sql.prepare << "SELECT name FROM jobs");
  for (const std::string& name : rows) names.push_back(name);
  for (const std::string& name : names) {
    const auto body = FindBody(sql, "SELECT body FROM jobs WHERE name = :name", name);
    MTMC_ASSIGN_OR_RETURN(const v1::Job job, Decode<v1::Job>(body.value_or("")));
    sql.Send("UPDATE jobs SET end_order = :ended, speedup_order = :speedup WHERE name = :name",
             {EndOf(job), SpeedupOf(job), name});
  }
  sql.Collect();
  return absl::OkStatus();
}

absl::StatusOr<v1::Job> LookupJob(SqlSession& sql, const std::string& name) {
  std::string body, key;
  if (!sql.Run("SELECT body, inspection_key FROM jobs WHERE name = :name", use(name), into(body),
               into(key))) {
    return NotFound("JOB", name);
  }
  MTMC_ASSIGN_OR_RETURN(v1::Job job, Decode<v1::Job>(body));
  const auto inspection = FindBody(sql, "SELECT body FROM inspections WHERE key = :key", key);
  if (inspection) {
    MTMC_ASSIGN_OR_RETURN(*job.mutable_inspection(), Decode<v1::Inspection>(*inspection));
  }
  return job;
}

absl::StatusOr<v1::Job::State> LookupState(SqlSession& sql, const std::string& job) {
  int state = 0;
  if (!sql.Run("SELECT state FROM jobs WHERE name = :name", use(job), into(state))) {
    return NotFound("JOB", job);
  }
  return static_cast<v1::Job::State>(state);
}

absl::StatusOr<JobPage> ListJobs(SqlSession& sql, const JobQuery& query) {
  const std::string filter = StateFilter(query.states);
  const std::string listing = absl::StrCat("jobs ", query.project, filter, ListingOf(query.order));
  MTMC_ASSIGN_OR_RETURN(const int page_size, EffectivePageSize(query.page_size));
  MTMC_ASSIGN_OR_RETURN(const PageMark mark,
                        ParsePageMark(listing, query.page_token, FirstMark(query.order)));
  const auto key = static_cast<long long>(mark.key);
  const auto position = static_cast<long long>(mark.position);
  const int limit = page_size + 1;
  const std::string expression = OrderExpression(query.order);
  const char* after = query.order.is_descending ? "<" : ">";
  const char* direction = query.order.is_descending ? "DESC" : "ASC";
  // The one job of a request is found by an index, for every creation looks for it; whoever lists
  // a project gets it in order by another one, without a sort.
  const bool is_of_request = !query.project.empty() && !query.request_id.empty();
  const char* filters = is_of_request ? " AND (:p <> '' AND project = :q)"
                                        " AND (:r <> '' AND request_id = :s)"
                                      : " AND (:p = '' OR project = :q)"
                                        " AND (:r = '' OR request_id = :s)";
  // The first of the conditions is one that an index serves.
  soci::rowset<soci::row> rows =
      (sql.prepare << absl::StrCat("SELECT position, body FROM jobs WHERE ", expression, " ", after,
                                   "= :key AND (", expression, " ", after,
                                   " :same OR position < :position)", filter, filters, " ORDER BY ",
                                   expression, " ", direction, ", position DESC LIMIT :limit"),
       use(key), use(key), use(position), use(query.project), use(query.project),
       use(query.request_id), use(query.request_id), use(limit));
  JobPage page;
  PageMark last;
  for (const soci::row& row : rows) {
    if (page.jobs.size() == static_cast<size_t>(page_size)) {
      page.next_page_token = MakePageToken(listing, last);
      break;
    }
    MTMC_ASSIGN_OR_RETURN(page.jobs.emplace_back(), Decode<v1::Job>(row.get<std::string>(1)));
    last = MarkOf(page.jobs.back(), row.get<long long>(0), query.order);
  }
  return page;
}

}  // namespace mtmc::store::sql
