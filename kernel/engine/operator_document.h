// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace mtmc::kernel {

// docs/operators.md: every ATen operator with what computes it, kernels of ours,
// a library call or neither. `mtmc-engine operators` prints it.
std::string OperatorDocument();

}  // namespace mtmc::kernel
