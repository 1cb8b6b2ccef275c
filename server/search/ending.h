// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "mtmc/v1/job.pb.h"
#include "server/search/lineage.h"

namespace mtmc::search {

// Why and how a job ends.
struct Ending {
  v1::Job::EndReason reason = v1::Job::END_REASON_UNSPECIFIED;
  std::optional<v1::JobFailure> failure;
};

Ending FailedBecause(const std::string& reason, const std::string& message);

// For an error of a service that another try would not cure; `otherwise` is the
// reason where the status names none.
Ending FailedBecause(const absl::Status& status, const std::string& otherwise);

// Whether no later step will fare better with the coder than the one that got `status`.
bool IsForGood(const absl::Status& status);

// Writes the best candidate into a job's record; null where none is correct.
void SetBest(const v1::Candidate* candidate, v1::Job& job);

// Writes the last state, the reason, the failure and the winner of a job, which is confirmed, into
// its record.
void Conclude(Ending ending, const Lineage& lineage, v1::Job& job);

}  // namespace mtmc::search
