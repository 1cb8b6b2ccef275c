// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace mtmc::base {

// The SHA-256 of some bytes, as 64 lowercase hexadecimal digits. A value.
struct Digest {
  std::string sha256_hex;

  // Whether `sha256_hex` has the right length and alphabet.
  bool is_valid() const;

  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// Digest of `bytes`.
Digest Sha256(std::string_view bytes);

// Digest of bytes that come in pieces. Thread-compatible.
//
//   Sha256Builder builder;
//   builder.Append(a).Append(b);
//   Digest digest = builder.Finish();   // equals Sha256(a + b)
class Sha256Builder {
 public:
  Sha256Builder();

  Sha256Builder& Append(std::string_view bytes);

  // The digest of all bytes so far. REQUIRES: called once, as the last call.
  Digest Finish();

 private:
  struct Deleter {
    void operator()(evp_md_ctx_st* context) const;
  };

  std::unique_ptr<evp_md_ctx_st, Deleter> context_;
};

}  // namespace mtmc::base
