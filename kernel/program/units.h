// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mtmc::kernel {

// A CUDA source of many kernels as several that can be compiled apart, at the same time and again
// only where they change: each is the source with some of its kernels alone, every kernel in one of
// them. Lines are others than in the source. Empty where the source is better compiled as it is:
// it has few kernels, or much beside them that each part would repeat; or it might mean something
// else then, because it includes files, another place names a kernel, or the text is ambiguous.
std::vector<std::string> SplitIntoUnits(std::string_view source);

}  // namespace mtmc::kernel
