// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernel/program/program.h"

namespace mtmc::kernel {

// The directive lines of `program`, header first, then tensors, tune
// parameters, steps and capture, each ended by a newline. Parsing them gives an
// equal program but for `text` and line numbers. The device source follows
// them in a complete text.
std::string PrintDirectives(const Program& program);

}  // namespace mtmc::kernel
