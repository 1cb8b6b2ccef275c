// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>

#include "mtmc/v1/evaluation.pb.h"

namespace mtmc::client {

// Draws a profile: a table of kernels, the sentence that explains the limit, and
// the counters by group, for the whole plan and for its longest kernels. Says why
// there are no counters where there are none. Nothing for an empty profile.
void PrintProfile(const v1::Profile& profile, std::ostream& out);

}  // namespace mtmc::client
