// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/program/program.h"

namespace mtmc::client {

// Whether an exported file should replay the plan as a CUDA graph: it can be captured, and a
// replay takes less time than to launch its steps from Python, although results of library
// calls are copied out of a graph for the caller.
bool ReplayPays(const kernel::Program& program);

}  // namespace mtmc::client
