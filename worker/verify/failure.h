// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mtmc/v1/evaluation.pb.h"

namespace mtmc::worker {

// A failure of the candidate in `stage`, as it is stored and shown.
v1::Failure MakeFailure(v1::Failure::Kind kind, v1::Stage stage, std::string message,
                        std::string diagnostics = "");

// What a candidate is that failed in this way; VERDICT_UNSPECIFIED when that says
// nothing about its results.
v1::Evaluation::Verdict VerdictOf(v1::Failure::Kind kind);

}  // namespace mtmc::worker
