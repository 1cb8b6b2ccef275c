// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/verify/verifier.h"

namespace mtmc::worker {

// Why an evaluation is over before its last stage, by who is at fault: the
// candidate, the worker or its reference process, or the problem.
using StageEnd = std::variant<v1::Failure, v1::WorkerFailure, v1::JobFailure>;

// Absent: the next stage follows.
using MaybeEnd = std::optional<StageEnd>;

StageEnd WorkerTrouble(std::string reason, std::string message);
StageEnd WorkerTrouble(const ReferenceTrouble& trouble);

}  // namespace mtmc::worker
