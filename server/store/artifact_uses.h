// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mtmc/v1/candidate.pb.h"

namespace mtmc::store {

// The artifacts that belong to whom the candidate belongs to: its program, and what was said to
// the language model that wrote it. Digests that are not set are among them.
inline std::array<const v1::Digest*, 3> ArtifactsOf(const v1::Candidate& candidate) {
  return {&candidate.program(), &candidate.token_use().prompt(), &candidate.token_use().reply()};
}

// Whose an artifact is: of each project that has uploaded it, and of each with a job whose
// source or start program it is, or of whose candidates it is one (ArtifactsOf). Projects are named
// `projects/p`.
//
// Of a JobStore that has it as well: what a job uses is written by the Write that makes the
// job or the candidate, and is gone with the job. An upload is remembered for as long as the
// blob is there; it keeps no blob from being removed.
//
// Thread-safe; may block like a JobStore, and has its errors. While commits are grouped,
// reads see what is written, and so what anybody was told of.
class ArtifactUses {
 public:
  virtual ~ArtifactUses() = default;

  // Those of `sha256s` that belong to one of `projects`.
  virtual absl::StatusOr<std::set<std::string>> FindOwned(
      const std::vector<std::string>& sha256s, const std::vector<std::string>& projects) = 0;

  // Each of `projects` has the blob from now on. Survives a crash when it returns OK.
  virtual absl::Status AddUpload(const std::string& sha256,
                                 const std::vector<std::string>& projects) = 0;

  // Forgets who uploaded the blob, because it goes.
  virtual absl::Status RemoveUploads(const std::string& sha256) = 0;
};

}  // namespace mtmc::store
