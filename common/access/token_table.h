// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/access/role.h"
#include "common/base/clock.h"

namespace mtmc::access {

// Whose bearer tokens they are, without the tokens: a file of lines
//
//   # who     role       project  SHA-256 of the token
//   alice     submitter  vision   ba7816bf8f01...
//   machines  worker     *        2cf24dba5fb0...
//
// A token may have several lines, of one name. Workers serve every project. Empty lines
// and those that begin with `#` are skipped.
struct TokenTable {
  // By hash.
  std::map<std::string, Identity, std::less<>> identities;

  // INVALID_ARGUMENT with reason TOKENS_INVALID; the message has the line's number and
  // nothing that it holds.
  static absl::StatusOr<TokenTable> Parse(std::string_view text);
};

// A new token from the system's random numbers, `mtmc_` and 64 hexadecimal digits.
std::string MakeToken();

// The line of a token's file.
std::string TokenLine(std::string_view name, Role role, std::string_view project,
                      std::string_view token);

// A token file that is read anew within a second of a change. While the new one cannot be
// used, the old one holds, and the log says so. Thread-safe.
class TokenFile {
 public:
  // `clock` is borrowed. INVALID_ARGUMENT with reason TOKENS_INVALID.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path,
                                                         base::Clock& clock);

  // Whose token it is; nothing if it is nobody's.
  std::optional<Identity> Find(std::string_view token) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  TokenFile(std::string path, base::Clock& clock);

  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string path_;
  base::Clock& clock_;

  absl::Mutex mu_;
  absl::Time next_look_ ABSL_GUARDED_BY(mu_);
  // As last read, good or bad.
  std::string text_ ABSL_GUARDED_BY(mu_);
  TokenTable table_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::access
