// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "kernel/program/program.h"

namespace mtmc::kernel {

// Reads what follows the word `call`, such as
// `aten::linear(x, w, b) -> h precision=tf32`. INVALID_ARGUMENT says what to
// change. `line` is left 0. Accepts any bytes. A bare name is a tensor name,
// declared or not, and what it is a view of may be too small: the checker knows.
absl::StatusOr<LibraryCall> ParseCall(std::string_view text);

}  // namespace mtmc::kernel
