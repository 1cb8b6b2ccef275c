// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace mtmc::base {

// Debian builds Abseil with a string view of its own, which does not convert
// from or to the standard one. Our interfaces use the standard one; these two
// stand where a view meets Abseil: absl::StrCat("job ", ToAbsl(name)). Where
// Abseil uses the standard view, they are the identity.
inline absl::string_view ToAbsl(std::string_view view) { return {view.data(), view.size()}; }

inline std::string_view ToStd(absl::string_view view) { return {view.data(), view.size()}; }

}  // namespace mtmc::base
