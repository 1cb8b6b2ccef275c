// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

struct evp_pkey_st;

namespace mtmc::access {

// The public keys of whoever issues tokens: a JWKS (RFC 7517), as an identity provider serves
// it. Keys for signatures alone: RSA of at least 2048 bits, which verify RS256, and P-256,
// which verify ES256. Which of the two a key verifies is the key's to say, never the token's.
// Other keys of the set are left out, symmetric ones among them. A value; thread-safe.
class JwkSet {
 public:
  // One signature algorithm of RFC 7518.
  enum class Algorithm { kRs256, kEs256 };

  // INVALID_ARGUMENT with reason JWT_KEYS_INVALID for what is no JWKS, has a key that is
  // malformed or too short, or has none of ours. The text may be anything.
  static absl::StatusOr<JwkSet> Parse(std::string_view text);

  // Whether one of the keys verifies `signature` over `signed_text`. `kid` is that of the
  // token's header; without one the set must have a single key of that algorithm.
  bool Verify(Algorithm algorithm, std::string_view kid, std::string_view signed_text,
              std::string_view signature) const;

  size_t size() const { return keys_.size(); }

 private:
  struct Key {
    std::string kid;
    Algorithm algorithm = Algorithm::kRs256;
    // Shared by the copies of the set, and never changed.
    std::shared_ptr<evp_pkey_st> key;
  };

  std::vector<Key> keys_;
};

}  // namespace mtmc::access
