// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>

#include "mtmc/v1/evaluation.pb.h"

namespace mtmc::client {

// Tells how far the checks of a measured candidate reach: how many executions were
// timed, how many of them were checked, and what its time stands on. Nothing for a
// candidate that was not timed.
void PrintChecks(const v1::VerificationSummary& checks, std::ostream& out);

}  // namespace mtmc::client
