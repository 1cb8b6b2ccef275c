// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_records.h"

#include <soci/soci.h>

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/page_token.h"
#include "server/store/sql_codec.h"
#include "server/store/sql_session.h"

namespace mtmc::store::sql {
namespace {

using soci::into;
using soci::use;

// `projects/p/records/r` to `projects/p`.
std::string ProjectOf(const std::string& record_name) {
  return record_name.substr(0, record_name.rfind("/records/"));
}

}  // namespace

void WriteRecords(SqlSession& sql, const Write& write) {
  for (const std::string& name : write.refuted) {
    sql.Send("DELETE FROM records WHERE name = :name", {name});
  }
  for (const auto& [record, anchor] : write.learned) {
    const std::string project = ProjectOf(record.name());
    const auto picoseconds = std::llround(record.seconds() * 1e12);
    const std::string body = Encode(record);
    // A name that is there keeps its position. PostgreSQL takes a parameter of a SELECT for
    // text unless it is told.
    sql.Send(
        "INSERT INTO records (name, project, position, anchor, picoseconds, body) SELECT :name,"
        " :project, COALESCE(MAX(position), 0) + 1, :anchor, CAST(:time AS BIGINT), :body"
        " FROM records WHERE true ON CONFLICT (name) DO UPDATE SET anchor = excluded.anchor,"
        " picoseconds = excluded.picoseconds, body = excluded.body"
        " WHERE excluded.picoseconds < records.picoseconds",
        {record.name(), project, anchor, picoseconds, body});
  }
}

absl::StatusOr<std::vector<v1::TunedRecord>> FindRecords(SqlSession& sql,
                                                         const std::string& project,
                                                         const std::vector<std::string>& anchors) {
  std::vector<v1::TunedRecord> records;
  // Each has an index of its own.
  const std::string query =
      project.empty() ? "SELECT body FROM records WHERE :any = '' AND anchor = :anchor"
                      : "SELECT body FROM records WHERE project = :any AND anchor = :anchor";
  for (const std::string& anchor : anchors) {
    soci::rowset<std::string> rows = (sql.prepare << query, use(project), use(anchor));
    for (const std::string& body : rows) {
      MTMC_ASSIGN_OR_RETURN(records.emplace_back(), Decode<v1::TunedRecord>(body));
    }
  }
  return records;
}

absl::StatusOr<v1::TunedRecord> LookupRecord(SqlSession& sql, const std::string& name) {
  const auto body = FindBody(sql, "SELECT body FROM records WHERE name = :name", name);
  if (!body) return NotFound("RECORD", name);
  return Decode<v1::TunedRecord>(*body);
}

absl::StatusOr<RecordPage> ListRecords(SqlSession& sql, const RecordQuery& query) {
  const std::string listing = absl::StrCat("records ", query.project);
  MTMC_ASSIGN_OR_RETURN(const int page_size, EffectivePageSize(query.page_size));
  MTMC_ASSIGN_OR_RETURN(const int64_t start, ParsePageToken(listing, query.page_token, 0));
  const auto after = static_cast<long long>(start);
  const int limit = page_size + 1;
  soci::rowset<soci::row> rows =
      (sql.prepare << "SELECT position, body FROM records WHERE project = :project AND"
                      " position > :after ORDER BY position LIMIT :limit",
       use(query.project), use(after), use(limit));
  RecordPage page;
  long long last = 0;
  for (const soci::row& row : rows) {
    if (page.records.size() == static_cast<size_t>(page_size)) {
      page.next_page_token = MakePageToken(listing, last);
      break;
    }
    last = row.get<long long>(0);
    MTMC_ASSIGN_OR_RETURN(page.records.emplace_back(),
                          Decode<v1::TunedRecord>(row.get<std::string>(1)));
  }
  return page;
}

}  // namespace mtmc::store::sql
