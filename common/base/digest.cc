// SPDX-License-Identifier: Apache-2.0
#include "common/base/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "common/base/check.h"

namespace mtmc::base {

bool Digest::is_valid() const {
  return sha256_hex.size() == 64 && std::all_of(sha256_hex.begin(), sha256_hex.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Digest Sha256(std::string_view bytes) { return Sha256Builder().Append(bytes).Finish(); }

void Sha256Builder::Deleter::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

namespace {

// Looked up once, for EVP_sha256() looks through the providers at every use, which takes as long
// as to hash a kilobyte.
const EVP_MD* Method() {
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return method;
}

}  // namespace

// OpenSSL's digest calls fail only when memory runs out or a provider is
// missing from the build, hence the checks.
Sha256Builder::Sha256Builder() : context_(EVP_MD_CTX_new()) {
  MTMC_CHECK(context_ != nullptr);
  MTMC_CHECK(EVP_DigestInit_ex(context_.get(), Method(), nullptr) == 1);
}

Sha256Builder& Sha256Builder::Append(std::string_view bytes) {
  MTMC_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  return *this;
}

Digest Sha256Builder::Finish() {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> raw{};
  unsigned int length = 0;
  MTMC_CHECK(EVP_DigestFinal_ex(context_.get(), raw.data(), &length) == 1);
  Digest digest;
  for (unsigned int i = 0; i < length; ++i) {
    digest.sha256_hex.push_back(kHex[raw[i] >> 4]);
    digest.sha256_hex.push_back(kHex[raw[i] & 15]);
  }
  return digest;
}

}  // namespace mtmc::base
