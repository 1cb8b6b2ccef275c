// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/artifact_access.h"

#include "absl/strings/str_cat.h"
#include "common/access/caller.h"
#include "common/base/status_macros.h"

namespace mtmc::coordinator {

using access::Role;

ArtifactRights ArtifactAccess::RightsOf(const grpc::ServerContextBase& context) const {
  const auto caller = access::FindCaller(context);
  if (is_shared_ || !caller) return {.reads_all = true};
  ArtifactRights rights;
  for (const access::Grant& grant : caller->grants) {
    const bool is_reader =
        grant.role == Role::kWorker || access::Includes(grant.role, Role::kViewer);
    if (!is_reader) continue;
    if (grant.project == access::kAllProjects) {
      rights.reads_all = true;
      continue;
    }
    const std::string project = absl::StrCat("projects/", grant.project);
    rights.read_projects.push_back(project);
    if (access::Includes(grant.role, Role::kSubmitter)) rights.upload_projects.push_back(project);
  }
  return rights;
}

absl::StatusOr<bool> ArtifactAccess::MayRead(const ArtifactRights& rights,
                                             const v1::Digest& digest) const {
  MTMC_ASSIGN_OR_RETURN(const auto readable, FindReadable(rights, {digest.sha256()}));
  return !readable.empty();
}

absl::StatusOr<std::set<std::string>> ArtifactAccess::FindReadable(
    const ArtifactRights& rights, const std::vector<std::string>& sha256s) const {
  if (rights.reads_all) return std::set<std::string>(sha256s.begin(), sha256s.end());
  return uses_.FindOwned(sha256s, rights.read_projects);
}

absl::Status ArtifactAccess::RecordUpload(const ArtifactRights& rights,
                                          const v1::Digest& digest) const {
  return uses_.AddUpload(digest.sha256(), rights.upload_projects);
}

}  // namespace mtmc::coordinator
