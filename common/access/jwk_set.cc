// SPDX-License-Identifier: Apache-2.0
#include "common/access/jwk_set.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/access/base64url.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/rpc/error.h"

namespace mtmc::access {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxKeys = 100;
constexpr int kMinRsaBits = 2048;
// A longer modulus or exponent would let one signature take seconds.
constexpr size_t kMaxRsaBytes = 1024;
constexpr size_t kMaxExponentBytes = 4;
// Of one coordinate, and of each half of a signature.
constexpr size_t kP256Bytes = 32;

template <class T, void (*Free)(T*)>
struct Freer {
  void operator()(T* value) const { Free(value); }
};

using Bignum = std::unique_ptr<BIGNUM, Freer<BIGNUM, BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Freer<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freer<OSSL_PARAM, OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freer<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX, EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, Freer<ECDSA_SIG, ECDSA_SIG_free>>;
using PublicKey = std::shared_ptr<EVP_PKEY>;

absl::Status Invalid(std::string_view what) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "JWT_KEYS_INVALID",
                        absl::StrCat("the JWT keys ", base::ToAbsl(what)));
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Bignum ToBignum(std::string_view bytes) {
  return Bignum(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

// Text member of an object; empty if it has none.
std::string Text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::string> Decoded(const Json& object, const char* name, size_t max_bytes) {
  std::optional<std::string> bytes = DecodeBase64Url(Text(object, name));
  if (!bytes || bytes->empty() || bytes->size() > max_bytes) return std::nullopt;
  return bytes;
}

// Null if it is no valid key of that type.
PublicKey MakeKey(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* made = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  PublicKey key(made, EVP_PKEY_free);
  const KeyContext check(EVP_PKEY_CTX_new_from_pkey(nullptr, made, nullptr));
  return check && EVP_PKEY_public_check(check.get()) == 1 ? key : nullptr;
}

absl::StatusOr<PublicKey> MakeRsa(const Json& jwk) {
  const auto modulus = Decoded(jwk, "n", kMaxRsaBytes);
  const auto exponent = Decoded(jwk, "e", kMaxExponentBytes);
  if (!modulus || !exponent) return Invalid("have an RSA key without a usable n and e");
  const Bignum n = ToBignum(*modulus);
  const Bignum e = ToBignum(*exponent);
  const Builder builder(OSSL_PARAM_BLD_new());
  if (!n || !e || !builder ||
      !OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) ||
      !OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get())) {
    return Invalid("could not be taken in");
  }
  PublicKey key = MakeKey("RSA", builder.get());
  if (key == nullptr) return Invalid("have an RSA key that is none");
  if (EVP_PKEY_get_bits(key.get()) < kMinRsaBits) {
    return Invalid(base::ToStd(absl::StrCat("have an RSA key of ", EVP_PKEY_get_bits(key.get()),
                                            " bits, at least ", kMinRsaBits, " are needed")));
  }
  return key;
}

absl::StatusOr<PublicKey> MakeP256(const Json& jwk) {
  const auto x = Decoded(jwk, "x", kP256Bytes);
  const auto y = Decoded(jwk, "y", kP256Bytes);
  if (!x || !y || x->size() != kP256Bytes || y->size() != kP256Bytes) {
    return Invalid("have an EC key without a usable x and y");
  }
  const std::string point = absl::StrCat("\x04", *x, *y);
  const Builder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      !OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1",
                                       0) ||
      !OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                        point.size())) {
    return Invalid("could not be taken in");
  }
  PublicKey key = MakeKey("EC", builder.get());
  if (key == nullptr) return Invalid("have an EC key whose point is not on the curve");
  return key;
}

// Whether the key says that it is for something else, as for encryption.
bool IsForOther(const Json& jwk, std::string_view algorithm) {
  const std::string use = Text(jwk, "use");
  const std::string named = Text(jwk, "alg");
  return (!use.empty() && use != "sig") || (!named.empty() && named != algorithm);
}

// `r` and `s` in turn, as JWS has them, to the form that OpenSSL takes; empty if it is none.
std::string ToDer(std::string_view raw) {
  if (raw.size() != 2 * kP256Bytes) return "";
  Bignum r = ToBignum(raw.substr(0, kP256Bytes));
  Bignum s = ToBignum(raw.substr(kP256Bytes));
  const Signature signature(ECDSA_SIG_new());
  if (!r || !s || !signature || ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) return "";
  // They are the signature's now.
  std::ignore = r.release();
  std::ignore = s.release();
  unsigned char* bytes = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &bytes);
  if (size <= 0) return "";
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

bool VerifyWith(EVP_PKEY* key, std::string_view text, std::string_view signature) {
  const DigestContext context(EVP_MD_CTX_new());
  return context && EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(text),
                          text.size()) == 1;
}

}  // namespace

absl::StatusOr<JwkSet> JwkSet::Parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Invalid("are no JSON object");
  const auto list = json.find("keys");
  if (list == json.end() || !list->is_array()) return Invalid("have no array \"keys\"");
  if (list->size() > kMaxKeys) {
    return Invalid(base::ToStd(absl::StrCat("are more than ", kMaxKeys)));
  }
  JwkSet set;
  for (const Json& jwk : *list) {
    if (!jwk.is_object()) return Invalid("have an entry that is no object");
    const std::string type = Text(jwk, "kty");
    Key key{.kid = Text(jwk, "kid")};
    if (type == "RSA" && !IsForOther(jwk, "RS256")) {
      key.algorithm = Algorithm::kRs256;
      MTMC_ASSIGN_OR_RETURN(key.key, MakeRsa(jwk));
    } else if (type == "EC" && Text(jwk, "crv") == "P-256" && !IsForOther(jwk, "ES256")) {
      key.algorithm = Algorithm::kEs256;
      MTMC_ASSIGN_OR_RETURN(key.key, MakeP256(jwk));
    } else {
      continue;
    }
    set.keys_.push_back(std::move(key));
  }
  if (set.keys_.empty()) return Invalid("have no RSA or P-256 key for signatures");
  return set;
}

bool JwkSet::Verify(Algorithm algorithm, std::string_view kid, std::string_view signed_text,
                    std::string_view signature) const {
  const Key* chosen = nullptr;
  for (const Key& key : keys_) {
    if (key.algorithm != algorithm || (!kid.empty() && key.kid != kid)) continue;
    // Which of two is meant is not for us to guess.
    if (chosen != nullptr) return false;
    chosen = &key;
  }
  if (chosen == nullptr) return false;
  if (algorithm == Algorithm::kRs256) return VerifyWith(chosen->key.get(), signed_text, signature);
  const std::string der = ToDer(signature);
  return !der.empty() && VerifyWith(chosen->key.get(), signed_text, der);
}

}  // namespace mtmc::access
