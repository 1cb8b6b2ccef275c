// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace mtmc::base {

// Returns `status` with ` (context)` after its message; code and payloads stay.
// An OK status is returned as it is. `context` reads on from the error:
// Annotate(status, "while compiling candidate " + id).
absl::Status Annotate(const absl::Status& status, std::string_view context);

// Returns `status` with `prefix: ` before its message; code and payloads stay.
absl::Status Prefix(const absl::Status& status, std::string_view prefix);

// A status for a failed system call: code chosen from `error_number`, message
// `what: text of the error`. ENOSPC, EDQUOT, EMFILE and kin are
// RESOURCE_EXHAUSTED, ENOENT is NOT_FOUND, EACCES is PERMISSION_DENIED.
absl::Status SystemError(int error_number, std::string_view what);

}  // namespace mtmc::base
