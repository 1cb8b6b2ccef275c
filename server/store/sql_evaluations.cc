// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_evaluations.h"

#include <soci/soci.h>

#include <vector>

#include "common/base/status_macros.h"
#include "server/store/sql_codec.h"
#include "server/store/sql_session.h"

namespace mtmc::store::sql {
namespace {

using soci::into;
using soci::use;

}  // namespace

void WriteEvaluation(SqlSession& sql, const EvaluationRecord& record) {
  const std::string body = Encode(record.evaluation);
  sql.Send(
      "INSERT INTO evaluations (fingerprint, candidate, body, rank) VALUES (:f, :c, :b, :r)"
      " ON CONFLICT (fingerprint) DO UPDATE SET candidate = excluded.candidate,"
      " body = excluded.body, rank = excluded.rank WHERE excluded.rank > evaluations.rank",
      {record.fingerprint, record.candidate, body, record.rank()});
}

absl::StatusOr<std::optional<EvaluationRecord>> FindEvaluation(SqlSession& sql,
                                                               const std::string& fingerprint) {
  EvaluationRecord record{.fingerprint = fingerprint};
  std::string body;
  const bool is_there = sql.Run("SELECT candidate, body FROM evaluations WHERE fingerprint = :f",
                                use(fingerprint), into(record.candidate), into(body));
  if (!is_there) return std::nullopt;
  MTMC_ASSIGN_OR_RETURN(record.evaluation, Decode<v1::Evaluation>(body));
  return record;
}

absl::Status FillRanks(SqlSession& sql) {
  std::string fingerprint;
  std::vector<std::string> fingerprints;
  sql.ForEach(
      "SELECT fingerprint FROM evaluations", [&] { fingerprints.push_back(fingerprint); },
      into(fingerprint));
  for (const std::string& each : fingerprints) {
    MTMC_ASSIGN_OR_RETURN(const auto record, FindEvaluation(sql, each));
    sql.Send("UPDATE evaluations SET rank = :rank WHERE fingerprint = :f", {record->rank(), each});
  }
  sql.Collect();
  return absl::OkStatus();
}

}  // namespace mtmc::store::sql
