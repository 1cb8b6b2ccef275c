// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "mtmc/pipe/v1/reference.pb.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// The reference process could not do its part; says nothing about the candidate.
struct ReferenceTrouble {
  std::string reason;
  std::string message;
};

// What `reply`, which is not an answer or tells a failure, says about the reference process.
ReferenceTrouble TroubleOf(const Reply<pipe::v1::ReferenceResponse>& reply);

// Asks for the inputs of a workload. `keeps_last` tells that those of the last one are
// still executed.
pipe::v1::ReferenceRequest MakePrepare(const v1::Workload& workload, uint64_t salt,
                                       bool keeps_last);

// The workload of inputs that no program has seen.
v1::Workload FreshWorkload();

// A number that makes the seeds of a workload others than those that the process drew.
uint64_t DrawSalt();

// Asks for new inputs of FreshWorkload().
pipe::v1::ReferenceRequest MakePrepareFresh();

// Asks to forget the workload with the handle `prepared`, which frees memory.
pipe::v1::ReferenceRequest MakeRelease(int64_t prepared);

// Asks to compare the outputs that a runner has answered with those of the workload with
// the handle `prepared`.
pipe::v1::ReferenceRequest MakeCompare(int64_t prepared, const pipe::v1::RunnerResponse& outputs,
                                       bool is_repeat);

}  // namespace mtmc::worker
