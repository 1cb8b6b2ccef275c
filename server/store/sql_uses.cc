// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_uses.h"

#include <soci/soci.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/status_macros.h"
#include "server/store/artifact_uses.h"
#include "server/store/quota.h"
#include "server/store/sql_codec.h"
#include "server/store/sql_session.h"

namespace mtmc::store::sql {
namespace {

using soci::into;
using soci::use;

void Insert(SqlSession& sql, const std::string& sha256, const std::string& project,
            const std::string& job) {
  if (sha256.empty()) return;
  sql.Send(
      "INSERT INTO artifact_uses (sha256, project, job) VALUES (:sha256, :project, :job)"
      " ON CONFLICT DO NOTHING",
      {sha256, project, job});
}

bool IsOwned(SqlSession& sql, const std::string& sha256, const std::string& project) {
  int one = 0;
  return sql.Run(
      "SELECT 1 FROM artifact_uses WHERE sha256 = :sha256 AND project = :project LIMIT 1",
      use(sha256), use(project), into(one));
}

// The one column of what `query` finds.
template <class... Values>
std::vector<std::string> Column(SqlSession& sql, std::string_view query, Values... values) {
  std::string text;
  std::vector<std::string> texts;
  sql.ForEach(
      query, [&] { texts.push_back(text); }, std::move(values)..., into(text));
  return texts;
}

}  // namespace

void WriteUses(SqlSession& sql, const v1::Job& job) {
  const std::string project = ProjectOfJob(job.name());
  Insert(sql, job.problem().source().sha256(), project, job.name());
  Insert(sql, job.start_program().sha256(), project, job.name());
}

void WriteUse(SqlSession& sql, const std::string& job, const v1::Candidate& candidate) {
  for (const v1::Digest* digest : ArtifactsOf(candidate)) {
    Insert(sql, digest->sha256(), ProjectOfJob(job), job);
  }
}

void DeleteUses(SqlSession& sql, const std::string& job) {
  sql.Send("DELETE FROM artifact_uses WHERE job = :job", {job});
}

std::set<std::string> FindOwned(SqlSession& sql, const std::vector<std::string>& sha256s,
                                const std::vector<std::string>& projects) {
  std::set<std::string> owned;
  for (const std::string& sha256 : sha256s) {
    const auto is_of = [&](const std::string& project) { return IsOwned(sql, sha256, project); };
    if (std::any_of(projects.begin(), projects.end(), is_of)) owned.insert(sha256);
  }
  return owned;
}

void AddUpload(SqlSession& sql, const std::string& sha256,
               const std::vector<std::string>& projects) {
  for (const std::string& project : projects) Insert(sql, sha256, project, /*job=*/"");
}

void RemoveUploads(SqlSession& sql, const std::string& sha256) {
  sql.Send("DELETE FROM artifact_uses WHERE sha256 = :sha256 AND job = ''", {sha256});
}

absl::Status FillUses(SqlSession& sql) {
  for (const std::string& name : Column(sql, "SELECT name FROM jobs")) {
    const auto body = FindBody(sql, "SELECT body FROM jobs WHERE name = :name", name);
    MTMC_ASSIGN_OR_RETURN(const v1::Job job, Decode<v1::Job>(body.value_or("")));
    WriteUses(sql, job);
    const auto bodies = Column(sql, "SELECT body FROM candidates WHERE job = :job", use(name));
    for (const std::string& candidate_body : bodies) {
      MTMC_ASSIGN_OR_RETURN(const v1::Candidate candidate, Decode<v1::Candidate>(candidate_body));
      WriteUse(sql, name, candidate);
    }
  }
  sql.Collect();
  return absl::OkStatus();
}

}  // namespace mtmc::store::sql
