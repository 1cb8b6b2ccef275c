// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::store {
class SqlSession;
}

// The statements of a SqlJobStore on whose artifacts are, like sql_statements.h. Private to
// this folder.
namespace mtmc::store::sql {

// Version of the schema whose uses FillUses writes.
inline constexpr int kUsesVersion = 9;

// What a job and a candidate of `job` refer to. What is there already is left.
void WriteUses(SqlSession& session, const v1::Job& job);
void WriteUse(SqlSession& session, const std::string& job, const v1::Candidate& candidate);

void DeleteUses(SqlSession& session, const std::string& job);

// The methods of ArtifactUses, which has their contracts.
std::set<std::string> FindOwned(SqlSession& session, const std::vector<std::string>& sha256s,
                                const std::vector<std::string>& projects);
void AddUpload(SqlSession& session, const std::string& sha256,
               const std::vector<std::string>& projects);
void RemoveUploads(SqlSession& session, const std::string& sha256);

// For jobs and candidates of a store whose schema had none.
absl::Status FillUses(SqlSession& session);

}  // namespace mtmc::store::sql
