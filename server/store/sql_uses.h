// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"

namespace soci {
class session;
}

// The statements of a SqlJobStore on whose artifacts are, like sql_statements.h. Private to
// this folder.
namespace mtmc::store::sql {

// Version of the schema whose uses FillUses writes.
inline constexpr int kUsesVersion = 9;

// What a job and a candidate of `job` refer to. What is there already is left.
void WriteUses(soci::session& session, const v1::Job& job);
void WriteUse(soci::session& session, const std::string& job, const v1::Candidate& candidate);

void DeleteUses(soci::session& session, const std::string& job);

// The methods of ArtifactUses, which has their contracts.
std::set<std::string> FindOwned(soci::session& session, const std::vector<std::string>& sha256s,
                                const std::vector<std::string>& projects);
void AddUpload(soci::session& session, const std::string& sha256,
               const std::vector<std::string>& projects);
void RemoveUploads(soci::session& session, const std::string& sha256);

// For jobs and candidates of a store whose schema had none.
absl::Status FillUses(soci::session& session);

}  // namespace mtmc::store::sql
