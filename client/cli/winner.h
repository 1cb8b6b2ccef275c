// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/api.h"

namespace mtmc::client {

// Candidate that `name` stands for: itself, or the best one of a job.
// FAILED_PRECONDITION with reason NO_CORRECT_CANDIDATE when the job has none.
absl::StatusOr<v1::Candidate> FindCandidate(Api& api, const std::string& name);

// Full resource name from what a user typed: `jobs/x`, `x`, `x/c3` and full
// names all work.
std::string JobName(const std::string& project, const std::string& typed);
std::string CandidateName(const std::string& project, const std::string& typed);

// The Python file of a candidate, ready to be written.
absl::StatusOr<std::string> ExportText(Api& api, const v1::Candidate& candidate);

}  // namespace mtmc::client
