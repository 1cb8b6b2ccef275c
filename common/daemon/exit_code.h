// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace mtmc::daemon {

// How a program of ours ends, for whoever started it (docs/errors.md). 69 is EX_UNAVAILABLE
// of sysexits.h: to try again later may help.
inline constexpr int kExitOk = 0;
inline constexpr int kExitOther = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnavailable = 69;

// kExitUnavailable if something that the program depends on is not there
// (UNAVAILABLE, NOT_FOUND), kExitOk for OK, else kExitOther.
int ExitCodeOf(const absl::Status& status);

// Logs `what` with the reason and the message of `status`, which is not OK, and
// returns ExitCodeOf it.
int Fail(std::string_view what, const absl::Status& status);

// As Fail(), for a flag that asks for something that cannot be had.
int FailUsage(std::string_view what, const absl::Status& status);

}  // namespace mtmc::daemon
