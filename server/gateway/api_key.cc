// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/api_key.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace mtmc::gateway {

absl::StatusOr<ApiKey> ApiKey::ReadFile(const std::filesystem::path& path) {
  const absl::StatusOr<std::string> content = base::ReadFile(path, /*max_bytes=*/64 * 1024);
  if (!content.ok()) return content.status();
  std::string secret = content->substr(0, content->find('\n'));
  absl::StripAsciiWhitespace(&secret);
  const bool is_header_text = std::all_of(secret.begin(), secret.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (secret.empty() || !is_header_text) {
    return absl::InvalidArgumentError(
        absl::StrCat("the first line of ", path.string(), " is not an API key"));
  }
  return ApiKey(std::move(secret));
}

std::string ApiKey::Redact(std::string text) const {
  if (secret_.empty()) return text;
  for (size_t at = text.find(secret_); at != std::string::npos; at = text.find(secret_, at)) {
    text.replace(at, secret_.size(), "[key]");
  }
  return text;
}

}  // namespace mtmc::gateway
