// SPDX-License-Identifier: Apache-2.0
#include "common/access/jwt.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <catch2/catch.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/rpc/error.h"
#include "common/testing/fake_clock.h"
#include "common/testing/status_matchers.h"

namespace mtmc::access {
namespace {

using testing::IsOk;
using Json = nlohmann::json;

constexpr int64_t kNow = 1'700'000'000;
const JwtRules kRules{.issuer = "https://issuer", .audience = "mtmc"};

std::string Encode(const std::string& bytes) { return absl::WebSafeBase64Escape(bytes); }

// A private key of an issuer.
class Signer {
 public:
  static Signer Rsa(unsigned int bits = 2048) { return Signer(EVP_RSA_gen(bits), "RS256"); }

  static Signer P256() { return Signer(EVP_EC_gen("P-256"), "ES256"); }

  Json Jwk(const std::string& kid) const {
    if (algorithm_ == "RS256") {
      return {{"kty", "RSA"},
              {"kid", kid},
              {"use", "sig"},
              {"alg", "RS256"},
              {"n", Number(OSSL_PKEY_PARAM_RSA_N, 0)},
              {"e", Number(OSSL_PKEY_PARAM_RSA_E, 0)}};
    }
    return {{"kty", "EC"},
            {"crv", "P-256"},
            {"kid", kid},
            {"x", Number(OSSL_PKEY_PARAM_EC_PUB_X, 32)},
            {"y", Number(OSSL_PKEY_PARAM_EC_PUB_Y, 32)}};
  }

  std::string Pem() const {
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> memory(BIO_new(BIO_s_mem()), BIO_free_all);
    PEM_write_bio_PUBKEY(memory.get(), key_.get());
    char* text = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &text);
    return {text, static_cast<size_t>(size)};
  }

  // `header` and `claims` as a token.
  std::string SignAs(const Json& header, const std::string& claims) const {
    const std::string text = absl::StrCat(Encode(header.dump()), ".", Encode(claims));
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          EVP_MD_CTX_free);
    EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get());
    size_t size = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size());
    std::string signature(size, '\0');
    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                   text.size());
    signature.resize(size);
    return absl::StrCat(text, ".", Encode(algorithm_ == "RS256" ? signature : Raw(signature)));
  }

  std::string Sign(const Json& claims, const std::string& kid = "k1") const {
    return SignAs({{"alg", algorithm_}, {"typ", "JWT"}, {"kid", kid}}, claims.dump());
  }

 private:
  Signer(EVP_PKEY* key, std::string algorithm)
      : key_(key, EVP_PKEY_free), algorithm_(std::move(algorithm)) {}

  std::string Number(const char* name, int size) const {
    BIGNUM* number = nullptr;
    REQUIRE(EVP_PKEY_get_bn_param(key_.get(), name, &number) == 1);
    std::string bytes(static_cast<size_t>(size > 0 ? size : BN_num_bytes(number)), '\0');
    BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(bytes.size()));
    BN_free(number);
    return Encode(bytes);
  }

  // OpenSSL's form of a signature as that of JWS.
  static std::string Raw(const std::string& der) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
    const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> signature(
        d2i_ECDSA_SIG(nullptr, &bytes, static_cast<long>(der.size())), ECDSA_SIG_free);
    std::string raw(64, '\0');
    auto* to = reinterpret_cast<unsigned char*>(raw.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), to, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), to + 32, 32);
    return raw;
  }

  std::shared_ptr<EVP_PKEY> key_;
  std::string algorithm_;
};

std::string SetOf(const std::vector<Json>& keys) { return Json{{"keys", keys}}.dump(); }

Json Claims() {
  return {{"iss", "https://issuer"},
          {"aud", "mtmc"},
          {"sub", "alice"},
          {"exp", kNow + 60},
          {"mtmc_grants", {"mtmc:submitter:vision", "staff"}}};
}

const Signer& RsaSigner() {
  static const auto& signer = *new Signer(Signer::Rsa());
  return signer;
}

const Signer& EcSigner() {
  static const auto& signer = *new Signer(Signer::P256());
  return signer;
}

JwkSet Keys() { return *JwkSet::Parse(SetOf({RsaSigner().Jwk("k1"), EcSigner().Jwk("k2")})); }

absl::StatusOr<VerifiedJwt> Verify(const std::string& token) {
  return VerifyJwt(token, Keys(), kRules, absl::FromUnixSeconds(kNow));
}

std::string ReasonOf(const std::string& token) {
  const absl::Status status = Verify(token).status();
  CHECK((status.ok() || absl::IsUnauthenticated(status)));
  return rpc::ErrorReason(status);
}

// The token of alice with one claim that is another; without it if it is null.
std::string With(const std::string& claim, const Json& value) {
  Json claims = Claims();
  if (value.is_null()) {
    claims.erase(claim);
  } else {
    claims[claim] = value;
  }
  return RsaSigner().Sign(claims);
}

TEST_CASE("A JWT that a key of the set signed says who calls and what they may", "[access]") {
  for (const std::string& token :
       {RsaSigner().Sign(Claims(), "k1"), EcSigner().Sign(Claims(), "k2")}) {
    const auto verified = Verify(token);
    REQUIRE_THAT(verified.status(), IsOk());
    CHECK(verified->identity.name == "jwt:alice");
    REQUIRE(verified->identity.grants.size() == 1);
    CHECK(verified->identity.grants[0].role == Role::kSubmitter);
    CHECK(verified->identity.grants[0].project == "vision");
  }
}

TEST_CASE("Grants of a JWT are those of its form, and nothing else", "[access]") {
  const auto grants = [](const Json& value) {
    std::string text;
    const auto verified = Verify(With("mtmc_grants", value));
    for (const Grant& grant : verified->identity.grants) {
      absl::StrAppend(&text, std::string(RoleName(grant.role)), ":", grant.project, " ");
    }
    return text;
  };

  CHECK(grants("openid mtmc:viewer:speech mtmc:worker:*") == "viewer:speech worker:* ");
  CHECK(grants({"mtmc:administrator:*", 7, nullptr, Json::object()}) == "administrator:* ");
  CHECK(grants({"mtmc:owner:vision", "submitter:vision", "MTMC:viewer:vision"}).empty());
  CHECK(grants({"mtmc:worker:vision", "mtmc:viewer:", "mtmc:viewer", "mtmc:viewer:a/b"}).empty());
  CHECK(grants(nullptr).empty());
  CHECK(grants(Json::object()).empty());
}

TEST_CASE("A JWT for another time, issuer or audience lets nobody in", "[access]") {
  CHECK(ReasonOf(With("exp", kNow - 29)).empty());
  CHECK(ReasonOf(With("exp", kNow - 31)) == "TOKEN_EXPIRED");
  CHECK(ReasonOf(With("nbf", kNow + 29)).empty());
  CHECK(ReasonOf(With("aud", {"other", "mtmc"})).empty());
  for (const auto& [claim, value] :
       std::vector<std::pair<std::string, Json>>{{"exp", nullptr},
                                                 {"exp", "soon"},
                                                 {"exp", 1e300},
                                                 {"exp", -1},
                                                 {"nbf", kNow + 31},
                                                 {"nbf", "never"},
                                                 {"iss", nullptr},
                                                 {"iss", "https://other"},
                                                 {"iss", {"https://issuer"}},
                                                 {"aud", nullptr},
                                                 {"aud", "mtmc2"},
                                                 {"aud", "other mtmc"},
                                                 {"aud", Json::array()},
                                                 {"sub", nullptr},
                                                 {"sub", ""},
                                                 {"sub", "a b"},
                                                 {"sub", "a\nb"},
                                                 {"sub", 7},
                                                 {"sub", std::string(257, 'a')}}) {
    CAPTURE(claim, value.dump());
    CHECK(ReasonOf(With(claim, value)) == "TOKEN_INVALID");
  }
}

TEST_CASE("Nobody chooses the algorithm but the key", "[access]") {
  const std::string claims = Claims().dump();
  const auto unsigned_text = [&](const Json& header) {
    return absl::StrCat(Encode(header.dump()), ".", Encode(claims));
  };
  // Without a signature.
  for (const char* none : {"none", "None", "NONE", ""}) {
    CHECK(ReasonOf(unsigned_text({{"alg", none}}) + ".") == "TOKEN_INVALID");
    CHECK(ReasonOf(unsigned_text({{"alg", none}, {"kid", "k1"}}) + ".") == "TOKEN_INVALID");
  }
  CHECK(ReasonOf(unsigned_text({{"kid", "k1"}}) + ".") == "TOKEN_INVALID");
  CHECK(ReasonOf(unsigned_text({{"alg", "RS256"}, {"kid", "k1"}}) + ".") == "TOKEN_INVALID");
  // The public key, which everybody knows, as the secret of HS256.
  for (const std::string& secret :
       {RsaSigner().Pem(), RsaSigner().Jwk("k1").dump(), EcSigner().Pem()}) {
    const std::string text = unsigned_text({{"alg", "HS256"}, {"kid", "k1"}});
    std::string mac(EVP_MAX_MD_SIZE, '\0');
    unsigned int size = 0;
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(mac.data()), &size);
    CHECK(ReasonOf(absl::StrCat(text, ".", Encode(mac.substr(0, size)))) == "TOKEN_INVALID");
  }
  // A key of one algorithm under the name of another, and a key that comes with the token.
  CHECK(ReasonOf(RsaSigner().SignAs({{"alg", "ES256"}, {"kid", "k1"}}, claims)) == "TOKEN_INVALID");
  CHECK(ReasonOf(EcSigner().SignAs({{"alg", "RS256"}, {"kid", "k2"}}, claims)) == "TOKEN_INVALID");
  const Signer stranger = Signer::Rsa();
  CHECK(ReasonOf(stranger.SignAs({{"alg", "RS256"}, {"kid", "k1"}, {"jwk", stranger.Jwk("k1")}},
                                 claims)) == "TOKEN_INVALID");
  CHECK(ReasonOf(RsaSigner().SignAs({{"alg", "RS256"}, {"kid", "k1"}, {"crit", {"exp"}}},
                                    claims)) == "TOKEN_INVALID");
}

TEST_CASE("A key is found by its kid, and guessed only where there is one", "[access]") {
  const std::string claims = Claims().dump();
  CHECK(ReasonOf(RsaSigner().Sign(Claims(), "k3")) == "TOKEN_INVALID");
  CHECK(ReasonOf(RsaSigner().Sign(Claims(), "k2")) == "TOKEN_INVALID");
  CHECK(ReasonOf(RsaSigner().SignAs({{"alg", "RS256"}}, claims)).empty());
  CHECK(ReasonOf(RsaSigner().SignAs({{"alg", "RS256"}, {"kid", 1}}, claims)) == "TOKEN_INVALID");
  const auto two = JwkSet::Parse(SetOf({RsaSigner().Jwk("k1"), Signer::Rsa().Jwk("k3")}));
  REQUIRE_THAT(two.status(), IsOk());

  const auto verify = [&](const Json& header) {
    return VerifyJwt(RsaSigner().SignAs(header, claims), *two, kRules, absl::FromUnixSeconds(kNow));
  };

  CHECK(verify({{"alg", "RS256"}, {"kid", "k1"}}).ok());
  CHECK_FALSE(verify({{"alg", "RS256"}}).ok());
}

TEST_CASE("A JWT that was changed anywhere lets nobody in", "[access]") {
  for (const std::string& token :
       {RsaSigner().Sign(Claims(), "k1"), EcSigner().Sign(Claims(), "k2")}) {
    std::minstd_rand random(7);
    for (int i = 0; i < 300; ++i) {
      std::string changed = token;
      const size_t at = random() % changed.size();
      const char other = "ABCabc019-_.=+/ \n"[random() % 17];
      if (changed[at] == other) continue;
      if (random() % 3 == 0) {
        changed.erase(at, 1 + random() % 3);
      } else {
        changed[at] = other;
      }
      CAPTURE(changed);
      CHECK(ReasonOf(changed) == "TOKEN_INVALID");
    }
  }
  for (const char* text : {"..", "a.b.c", ". .", "e30.e30.", "bnVsbA.bnVsbA.AAAA"}) {
    CHECK(ReasonOf(text) == "TOKEN_INVALID");
  }
  CHECK(ReasonOf(std::string(20'000, 'a') + "..") == "TOKEN_INVALID");
}

TEST_CASE("Nothing of a JWT is in what a refusal says", "[access]") {
  const std::string token = With("sub", "pl anted");
  CHECK_FALSE(absl::StrContains(Verify(token).status().ToString(), "anted"));
  CHECK_FALSE(absl::StrContains(Verify(token).status().ToString(), token.substr(0, 10)));
}

TEST_CASE("A set of keys that cannot be trusted is refused", "[access]") {
  Json off_curve = EcSigner().Jwk("k");
  off_curve["y"] = off_curve["x"];
  Json even = RsaSigner().Jwk("k");
  even.erase("n");
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{\"keys\": {}}"), SetOf({}), SetOf({7}),
        SetOf({Signer::Rsa(1024).Jwk("k")}), SetOf({off_curve}), SetOf({even}),
        // A shared secret verifies nothing here.
        SetOf({{{"kty", "oct"}, {"k", "c2VjcmV0"}, {"alg", "HS256"}}}),
        SetOf({{{"kty", "EC"}, {"crv", "P-256"}, {"x", "AA"}, {"y", "AA"}}})}) {
    CAPTURE(text);
    CHECK(rpc::ErrorReason(JwkSet::Parse(text).status()) == "JWT_KEYS_INVALID");
  }
  // Keys for something else lie beside ours in many sets.
  Json encryption = RsaSigner().Jwk("enc");
  encryption["use"] = "enc";
  CHECK(JwkSet::Parse(SetOf({encryption, EcSigner().Jwk("k"), {{"kty", "OKP"}}}))->size() == 1);
}

TEST_CASE("Keys that change count within a second, and bad ones not at all", "[access]") {
  const base::TempDir folder = *base::TempDir::Create();
  const std::string file = folder.path() / "jwks.json";
  testing::FakeClock clock;
  Json claims = Claims();
  claims["exp"] = absl::ToUnixSeconds(clock.Now()) + 3600;
  const auto write = [&](const std::string& text) {
    REQUIRE_THAT(base::WriteFileAtomically(file, text), IsOk());
    clock.Advance(absl::Seconds(1));
  };
  write(SetOf({RsaSigner().Jwk("k1")}));
  const auto opened = JwtVerifier::Open({.key_file = file, .rules = kRules}, clock);
  REQUIRE_THAT(opened.status(), IsOk());
  JwtVerifier& verifier = **opened;
  const std::string rsa = RsaSigner().Sign(claims, "k1");
  const std::string ec = EcSigner().Sign(claims, "k2");

  CHECK(verifier.Verify(rsa)->name == "jwt:alice");
  CHECK(verifier.Verify(rsa)->name == "jwt:alice");
  CHECK_FALSE(verifier.Verify(ec).ok());
  write("{");
  CHECK(verifier.Verify(rsa).ok());
  // A key that is gone lets nobody in, though it did a moment ago.
  write(SetOf({EcSigner().Jwk("k2")}));
  CHECK_FALSE(verifier.Verify(rsa).ok());
  CHECK(verifier.Verify(ec).ok());
  clock.Advance(absl::Hours(2));
  CHECK(rpc::ErrorReason(verifier.Verify(ec).status()) == "TOKEN_EXPIRED");
}

TEST_CASE("JWT need an issuer and keys that are there", "[access]") {
  testing::FakeClock clock;
  CHECK(
      rpc::ErrorReason(JwtVerifier::Open({.key_file = "/none", .rules = kRules}, clock).status()) ==
      "JWT_KEYS_INVALID");
  CHECK(rpc::ErrorReason(JwtVerifier::Open({.key_file = "/none"}, clock).status()) ==
        "JWT_RULES_INVALID");
}

}  // namespace
}  // namespace mtmc::access
