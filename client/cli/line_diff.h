// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mtmc::client {

// Lines of two texts as a unified diff without headers: ` kept`, `-old`, `+new`,
// with three lines of context around each change and `@@` between distant ones.
// The longest common subsequence by dynamic programming: O(lines^2), for
// programs of a few thousand lines.
std::vector<std::string> LineDiff(std::string_view before, std::string_view after);

}  // namespace mtmc::client
