// SPDX-License-Identifier: Apache-2.0

// A token and a set of keys may be any bytes: the first line is the token, the rest the keys.
// Nobody is let in by them, but for the one token whose signature is made with the key that
// is in the corpus.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/access/jwt.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using mtmc::access::JwkSet;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  const std::string_view token = text.substr(0, line);
  const std::string_view keys = line == text.npos ? "" : text.substr(line + 1);
  const absl::StatusOr<JwkSet> set = JwkSet::Parse(keys);
  if (!set.ok()) return 0;
  const auto verified =
      mtmc::access::VerifyJwt(token, *set, {.issuer = "https://issuer", .audience = "mtmc"},
                              absl::FromUnixSeconds(1'700'000'000));
  // Who has a name may be somebody.
  if (verified.ok() && verified->identity.name.size() < 5) std::abort();
  return 0;
}
