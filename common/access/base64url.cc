// SPDX-License-Identifier: Apache-2.0
#include "common/access/base64url.h"

#include "absl/strings/escaping.h"
#include "common/base/string_view.h"

namespace mtmc::access {

std::optional<std::string> DecodeBase64Url(std::string_view text) {
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(base::ToAbsl(text), &bytes)) return std::nullopt;
  // Abseil skips spaces, and takes padding and bits that are not zero.
  if (absl::WebSafeBase64Escape(bytes) != base::ToAbsl(text)) return std::nullopt;
  return bytes;
}

}  // namespace mtmc::access
