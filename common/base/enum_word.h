// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace mtmc::base {

// What people and labels call an enumerator of the contract: `KIND_WRONG_RESULT` without
// its prefix `KIND_` is `wrong_result`.
std::string EnumWord(std::string_view enumerator, std::string_view prefix);

}  // namespace mtmc::base
