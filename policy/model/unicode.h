// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mtmc::policy {

// Whether the bytes are well-formed UTF-8.
bool IsUtf8(std::string_view text);

// Canonical composition (NFC). INVALID_ARGUMENT when the text is not UTF-8.
absl::StatusOr<std::string> ToNfc(std::string_view text);

// Bytes of the run of white space at an end of valid UTF-8 text.
size_t LeadingWhiteSpace(std::string_view text);
size_t TrailingWhiteSpace(std::string_view text);

// Whether valid UTF-8 text begins or ends with a word character (`\w`): a
// letter, mark, digit, connector or joiner, but not a superscript or fraction.
bool BeginsWithWord(std::string_view text);
bool EndsWithWord(std::string_view text);

// Bytes of the first character of valid, non-empty UTF-8 text.
size_t FirstCharacterBytes(std::string_view text);

}  // namespace mtmc::policy
