// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::search {

// The job as it will run: every option at its effective value, output-only
// fields cleared. What a job is stored with never depends on a later default.
// INVALID_ARGUMENT with reason INVALID_JOB and one BadRequest violation for
// every field that is out of range.
absl::StatusOr<v1::Job> ResolveJob(const v1::Job& job);

}  // namespace mtmc::search
