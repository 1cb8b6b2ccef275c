// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace mtmc::gateway {

// A provider's secret. Has no conversion to text besides the one header it is
// for, so that it cannot reach a log, an error or a recording by accident.
class ApiKey {
 public:
  // No key: the header is empty, for local servers.
  ApiKey() = default;

  explicit ApiKey(std::string secret) : secret_(std::move(secret)) {}

  // The first line of a file, without blanks at its ends. INVALID_ARGUMENT when
  // it is empty or holds bytes that no header may; its content is never quoted.
  static absl::StatusOr<ApiKey> ReadFile(const std::filesystem::path& path);

  bool is_empty() const { return secret_.empty(); }

  // `Bearer ...` for the Authorization header.
  std::string AuthorizationHeader() const { return "Bearer " + secret_; }

  // `text` with every occurrence of the key replaced by `[key]`. Providers echo
  // keys in errors.
  std::string Redact(std::string text) const;

 private:
  std::string secret_;
};

}  // namespace mtmc::gateway
