// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::kernel {

// Part of a CUDA source that can be compiled by itself.
struct SourceUnit {
  std::string text;
  // The name that each of its kernels has in `text`, by the one it has in the source.
  std::map<std::string, std::string> kernels;
};

// A CUDA source of many kernels as several that can be compiled apart, at the same time and again
// only where they change: each is the source with some of its kernels alone, every kernel in one of
// them, and without comments. Kernels that differ in their names and in those of their parameters
// alone have equal texts: a network repeats its layers. Lines are others than in the source. Empty
// where the source is better compiled as it is: it has few kernels, or much beside them that each
// part would repeat; or it might mean something else then, because it includes files, another place
// names a kernel, or the text is ambiguous.
std::vector<SourceUnit> SplitIntoUnits(std::string_view source);

}  // namespace mtmc::kernel
