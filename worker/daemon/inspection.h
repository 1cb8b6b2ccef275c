// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/daemon/evaluation_context.h"

namespace mtmc::worker {

// Traces a problem and times its baselines, again if the interpreter was killed. A
// worker failure when the user's code asks for more isolation than there is, before
// anything of it is fetched.
v1::LeaseResult InspectProblem(const EvaluationContext& context,
                               const v1::InspectionRequest& request);

// The problem's failure when it could not be loaded or timed, from the status
// of LoadProblem or TimeBaselines.
v1::JobFailure FailureOfReference(const absl::Status& status);

}  // namespace mtmc::worker
