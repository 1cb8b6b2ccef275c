// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mtmc::kernel {

// Lexical pieces of a directive. Everything here accepts any bytes, takes time
// linear in them and returns views into them; errors are INVALID_ARGUMENT with
// a message for the program's author.

// `key=value` of a directive.
struct Field {
  std::string_view key;
  std::string_view value;
};

// Splits ` grid=(4, 2) block=256`: a field begins at a known key that follows a
// blank outside brackets and quotes, and runs to the next one.
absl::StatusOr<std::vector<Field>> SplitFields(std::string_view text,
                                               const std::vector<std::string_view>& keys);

// `(a, f(b, c))` to `a` and `f(b, c)`; a text without outer parentheses is one
// element, `()` none. Elements are trimmed.
absl::StatusOr<std::vector<std::string_view>> SplitTuple(std::string_view text);

// Splits at commas outside brackets and quotes; trims. A blank text has no
// elements. INVALID_ARGUMENT on unbalanced brackets or an empty element.
absl::StatusOr<std::vector<std::string_view>> SplitList(std::string_view text);

// A decimal number with a point or an exponent, or `inf`, `-inf`, `nan`.
// Absent for integers and everything else.
std::optional<double> FindReal(std::string_view text);

bool IsUtf8(std::string_view text);

}  // namespace mtmc::kernel
