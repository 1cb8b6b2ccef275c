// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mtmc/v1/device.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/problem.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::search {

// Digest of everything the outcome of `request` depends on: program, problem
// (not its display name), options, allowed calls, device class, and the version
// of the evaluation rules. `request.fingerprint`, the least isolation, which says
// who may do it and not what comes of it, and the speedup to beat are ignored.
std::string EvaluationFingerprint(const v1::EvaluationRequest& request,
                                  const v1::DeviceFacts& device);

// The same where the job allows `calls`, whatever part of them the request has.
std::string EvaluationFingerprint(const v1::EvaluationRequest& request,
                                  const std::vector<std::string>& calls,
                                  const v1::DeviceFacts& device);

// Key of the inspection of a problem on a device class; the least isolation is
// ignored here, too.
std::string InspectionKey(const v1::InspectionRequest& request, const v1::DeviceFacts& device);

// `key`, one of the above, of the work of one project alone: the same work of another has
// another key, so that nothing of it is shared.
std::string WithinProject(const std::string& project, const std::string& key);

// Whether a finished evaluation may answer for another candidate with the same
// fingerprint. Not when its failure may be the host's doing: a crash, a
// time-out, memory that ran out, a reference that failed. Nor where IsAnswer is false.
bool IsReusable(const v1::EvaluationRequest& request, const v1::Evaluation& evaluation);

// Whether an evaluation with the fingerprint of `request` did all that this asks for:
// who was no winner elsewhere may be one here, and was not confirmed.
bool IsAnswer(const v1::EvaluationRequest& request, const v1::Evaluation& evaluation);

}  // namespace mtmc::search
