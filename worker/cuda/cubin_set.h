// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::worker {

// A cubin with some kernels of a program.
struct CubinPart {
  std::string_view cubin;
  // The symbol of each, by the kernel's name in the program: kernels that differ in nothing else
  // share one.
  std::map<std::string, std::string> symbols;
};

// The parts of one program in one string, as a builder hands them to a runner.
std::string JoinCubins(const std::vector<CubinPart>& parts);

// The parts of such a string, which they point into: itself, with no symbols, unless it was joined.
// Absent where it is malformed; any bytes may be given.
std::optional<std::vector<CubinPart>> SplitCubins(std::string_view binary);

}  // namespace mtmc::worker
