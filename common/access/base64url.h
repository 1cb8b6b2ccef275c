// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mtmc::access {

// The bytes of base64url without padding (RFC 7515); nothing for any other text, also for one
// that says the same bytes in another way: there is one text for each token.
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace mtmc::access
