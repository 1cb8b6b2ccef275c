// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernel/program/program.h"

namespace mtmc::kernel {

// The distinct positive numbers that the kernels of a program are written with, from the least,
// at most 256: sizes, bounds and capacities among them. A sign is an operator. Empty for kTriton,
// whose text is not C.
std::vector<double> NumbersOf(const Program& program);

}  // namespace mtmc::kernel
