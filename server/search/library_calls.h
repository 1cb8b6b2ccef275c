// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mtmc::search {

// Names of all library operators that a program may call where its job allows any, sorted.
const std::vector<std::string>& LibraryCalls();

// Those of them that the program's text names: a worker needs no others, and they are some
// hundred times fewer. Sorted, each once.
std::vector<std::string> LibraryCallsIn(std::string_view program);

}  // namespace mtmc::search
