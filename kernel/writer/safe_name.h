// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace mtmc::kernel {

// True for a word that means something in CUDA C++ or OpenCL C, in the plan's
// grammar or in our helper functions, and so must not name a variable or kernel.
bool IsTakenName(std::string_view name);

// `name` made an identifier of at most 48 bytes that is not taken: `exp` becomes
// `exp_`SUFFIX.
std::string SafeName(std::string_view name, std::string_view suffix);

}  // namespace mtmc::kernel
