// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/access/jwk_set.h"
#include "common/access/role.h"
#include "common/base/clock.h"

namespace mtmc::access {

// What a JWT must say.
struct JwtRules {
  // The value of its claim `iss`.
  std::string issuer;
  // One of the values of its claim `aud`.
  std::string audience;
  // The claim that has its grants: an array of texts, or one text with spaces between them.
  // `mtmc:ROLE:PROJECT` is a grant, as `mtmc:submitter:vision`; all others are of no concern,
  // so that it may be the claim of groups or scopes that the issuer has already.
  std::string grants_claim = "mtmc_grants";
};

// Whether `token` has the form of a JWT, which no token of our own has.
bool LooksLikeJwt(std::string_view token);

// A token that was verified.
struct VerifiedJwt {
  // Named `jwt:` and the claim `sub`: no line of a token file is mistaken for it.
  Identity identity;
  absl::Time expiry;
};

// Verifies a JWT (RFC 7519) that is signed by RS256 or ES256 with a key of `keys`; `exp` and
// `sub` must be there. Clocks may differ by 30 s. The token may be anything, and no error has
// any of it. UNAUTHENTICATED with reason TOKEN_EXPIRED, or TOKEN_INVALID and what is wrong.
absl::StatusOr<VerifiedJwt> VerifyJwt(std::string_view token, const JwkSet& keys,
                                      const JwtRules& rules, absl::Time now);

// Verifies by a file of keys that is read anew within a second of a change. While the new one
// cannot be used, the old one holds, and the log says so. Thread-safe.
class JwtVerifier {
 public:
  struct Options {
    // A JWKS.
    std::string key_file;
    JwtRules rules;
  };

  // `clock` is borrowed. INVALID_ARGUMENT with reason JWT_KEYS_INVALID, or JWT_RULES_INVALID
  // without issuer, audience or claim.
  static absl::StatusOr<std::unique_ptr<JwtVerifier>> Open(const Options& options,
                                                           base::Clock& clock);

  // As VerifyJwt. What was verified is remembered until it expires or the keys change.
  absl::StatusOr<Identity> Verify(std::string_view token) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  JwtVerifier(Options options, base::Clock& clock);

  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Look(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  base::Clock& clock_;

  absl::Mutex mu_;
  absl::Time next_look_ ABSL_GUARDED_BY(mu_);
  // As last read, good or bad.
  std::string text_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const JwkSet> keys_ ABSL_GUARDED_BY(mu_);
  // By SHA-256 of the token.
  std::unordered_map<std::string, VerifiedJwt> verified_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::access
