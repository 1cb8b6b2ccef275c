// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mtmc/v1/worker.pb.h"

namespace mtmc::worker {

// Names from fixed sets, for labels of metrics and keys of summaries.

// `build`, `verify` and so on.
std::string StageLabel(v1::Stage stage);

// `correct`, `problem_failed`, `worker_failed`, `inspected`, or the kind of an
// evaluation's failure, such as `wrong_result`.
std::string OutcomeLabel(const v1::LeaseResult& result);

double SecondsOf(const v1::StageSpan& span);

}  // namespace mtmc::worker
