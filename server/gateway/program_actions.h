// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/gateway/micro_coder.h"

namespace mtmc::gateway {

// Type of the action that answers a failure, such as `fix_build`; null after a
// success, or where nothing was evaluated.
const char* RepairFor(Feedback::Outcome outcome);

// The legal actions on a program that no schedule stands behind: one that a
// language model or a person wrote. Regions are its kernels and pairs of
// neighbouring kernels, from the plan's data flow. After a failed evaluation
// only the fitting repair and `stop` are legal. Stable order, `stop` last, each
// text once.
std::vector<CodingAction> ListProgramActions(const CodingTask& task, const std::string& program,
                                             const Feedback& feedback);

}  // namespace mtmc::gateway
