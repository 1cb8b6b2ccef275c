// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::worker {

// Cubins of the parts of one program in one string, as a builder hands them to a runner. A single
// one is itself.
std::string JoinCubins(const std::vector<std::string>& cubins);

// The cubins of such a string, which they point into: itself, unless it was joined. Absent where
// it is malformed; any bytes may be given.
std::optional<std::vector<std::string_view>> SplitCubins(std::string_view binary);

}  // namespace mtmc::worker
