// SPDX-License-Identifier: Apache-2.0
#include "server/store/sql_lineage.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <soci/soci.h>

#include <cstdint>
#include <functional>
#include <set>

#include "absl/strings/escaping.h"
#include "common/base/status_macros.h"
#include "server/store/sql_codec.h"
#include "server/store/sql_session.h"

namespace mtmc::store::sql {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using soci::into;
using soci::use;

// Which change a body tells of, from its beginning; CHANGE_NOT_SET if that does not say.
v1::JobEvent::ChangeCase ChangeOf(const std::string& prefix) {
  std::string bytes;
  if (!absl::Base64Unescape(prefix, &bytes)) return v1::JobEvent::CHANGE_NOT_SET;
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
  while (const uint32_t tag = stream.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (field >= v1::JobEvent::kJob && field <= v1::JobEvent::kNotice) {
      return static_cast<v1::JobEvent::ChangeCase>(field);
    }
    if (!WireFormatLite::SkipField(&stream, tag)) break;
  }
  return v1::JobEvent::CHANGE_NOT_SET;
}

// Calls `take` with the sequence of each event of a job, in order, and what it changes.
void ForEachChange(SqlSession& sql, const std::string& job,
                   const std::function<void(long long, v1::JobEvent::ChangeCase)>& take) {
  long long sequence = 0;
  std::string text;
  // A multiple of four characters: 48 bytes, more than come before the change.
  sql.ForEach(
      "SELECT sequence, substr(body, 1, 64) FROM events WHERE job = :job ORDER BY sequence",
      [&] { take(sequence, ChangeOf(text)); }, use(job), into(sequence), into(text));
}

// Sequences of the newest events of candidates; 0 is among them if an earlier schema wrote one.
std::set<long long> NewestOfCandidates(SqlSession& sql, const std::string& job) {
  std::set<long long> newest;
  long long sequence = 0;
  sql.ForEach(
      "SELECT event FROM candidates WHERE job = :job", [&] { newest.insert(sequence); }, use(job),
      into(sequence));
  return newest;
}

}  // namespace

absl::StatusOr<std::vector<v1::JobEvent>> ReadLineage(SqlSession& sql, const std::string& job) {
  const std::set<long long> newest = NewestOfCandidates(sql, job);
  const bool has_unknown = newest.contains(0);
  std::vector<long long> wanted;
  ForEachChange(sql, job, [&](long long sequence, v1::JobEvent::ChangeCase change) {
    const bool is_superseded =
        change == v1::JobEvent::kCandidate && !has_unknown && !newest.contains(sequence);
    if (change == v1::JobEvent::kJob || change == v1::JobEvent::kNotice || is_superseded) return;
    wanted.push_back(sequence);
  });
  std::vector<v1::JobEvent> events;
  std::string text;
  for (const long long each : wanted) {
    const bool is_there = sql.Run("SELECT body FROM events WHERE job = :job AND sequence = :s",
                                  use(job), use(each), into(text));
    // The job was deleted meanwhile.
    if (!is_there) break;
    MTMC_ASSIGN_OR_RETURN(events.emplace_back(), Decode<v1::JobEvent>(text));
    events.back().set_sequence(each);
  }
  return events;
}

absl::StatusOr<std::vector<Compaction>> FindCompactions(SqlSession& sql, absl::Time end,
                                                        int limit) {
  const long long before = absl::ToUnixNanos(end);
  std::string job;
  std::vector<Compaction> found;
  sql.ForEach(
      "SELECT name FROM jobs WHERE is_compacted = 0 AND end_order < :end"
      " ORDER BY end_order LIMIT :limit",
      [&] { found.push_back({.job = job, .superseded = {}}); }, use(before), use(limit), into(job));
  for (Compaction& each : found) {
    const std::set<long long> newest = NewestOfCandidates(sql, each.job);
    // Rows of an earlier schema do not say which event is a candidate's newest.
    if (newest.contains(0)) continue;
    ForEachChange(sql, each.job, [&](long long sequence, v1::JobEvent::ChangeCase change) {
      if (change != v1::JobEvent::kCandidate || newest.contains(sequence)) return;
      each.superseded.push_back(sequence);
    });
  }
  return found;
}

void CompactLog(SqlSession& sql, const std::string& job, const std::vector<int64_t>& superseded) {
  for (const int64_t each : superseded) {
    const auto sequence = static_cast<long long>(each);
    sql.Send("DELETE FROM events WHERE job = :job AND sequence = :sequence", {job, sequence});
  }
  sql.Send("UPDATE jobs SET is_compacted = 1 WHERE name = :name", {job});
}

}  // namespace mtmc::store::sql
