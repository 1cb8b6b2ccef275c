// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mtmc/v1/tensor.pb.h"
#include "server/store/artifact_uses.h"

namespace grpc {
class ServerContextBase;
}

namespace mtmc::coordinator {

// Whose artifacts a caller may read, and in whose name it uploads. A value.
struct ArtifactRights {
  bool reads_all = false;
  // As `projects/p`: in which it reads, and in which it makes jobs.
  std::vector<std::string> read_projects;
  std::vector<std::string> upload_projects;
};

// The rule of who may read which artifact: who reads in a project reads what belongs to it
// (ArtifactUses); workers, and who reads in every project, read all; and so does everybody
// where nobody is asked who they are, or where projects share. What a caller may not read
// is to be as if it were absent, in what is said and in how long that takes: so ask here
// before the ArtifactStore is asked. Thread-safe. Private to the services of this folder.
class ArtifactAccess {
 public:
  // `uses` is borrowed.
  ArtifactAccess(store::ArtifactUses& uses, bool is_shared) : uses_(uses), is_shared_(is_shared) {}

  // Of the caller of `context`; for the method, before it returns.
  ArtifactRights RightsOf(const grpc::ServerContextBase& context) const;

  absl::StatusOr<bool> MayRead(const ArtifactRights& rights, const v1::Digest& digest) const;

  // Which of `sha256s` may be read.
  absl::StatusOr<std::set<std::string>> FindReadable(const ArtifactRights& rights,
                                                     const std::vector<std::string>& sha256s) const;

  // Who has the bytes may read them: their projects have the blob from now on.
  absl::Status RecordUpload(const ArtifactRights& rights, const v1::Digest& digest) const;

 private:
  store::ArtifactUses& uses_;
  const bool is_shared_;
};

}  // namespace mtmc::coordinator
