// SPDX-License-Identifier: Apache-2.0
#include "common/testing/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <atomic>

#include "common/base/check.h"

namespace mtmc::testing {
namespace {

constexpr long kAnHour = 3600;

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* value) const {
    kFree(value);
  }
};

using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Bytes = std::unique_ptr<BIO, Free<BIO_free_all>>;

PrivateKey MakeKey() {
  PrivateKey key(EVP_EC_gen("P-256"));
  MTMC_CHECK(key != nullptr);
  return key;
}

std::string Text(const Bytes& bytes) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bytes.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string ToPem(X509* certificate) {
  const Bytes bytes(BIO_new(BIO_s_mem()));
  MTMC_CHECK(PEM_write_bio_X509(bytes.get(), certificate) == 1);
  return Text(bytes);
}

std::string ToPem(EVP_PKEY* key) {
  const Bytes bytes(BIO_new(BIO_s_mem()));
  MTMC_CHECK(
      PEM_write_bio_PKCS8PrivateKey(bytes.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return Text(bytes);
}

void AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  MTMC_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Unsigned, for `key`.
Certificate MakeCertificate(const std::string& name, EVP_PKEY* key) {
  static std::atomic<long> serial = 1;
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kAnHour);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 24 * kAnHour);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

}  // namespace

struct TestAuthority::State {
  PrivateKey key = MakeKey();
  Certificate certificate;
};

TestAuthority::TestAuthority(const std::string& name) : state_(std::make_unique<State>()) {
  state_->certificate = MakeCertificate(name, state_->key.get());
  X509* own = state_->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE");
  MTMC_CHECK(X509_sign(own, state_->key.get(), EVP_sha256()) > 0);
}

TestAuthority::~TestAuthority() = default;

std::string TestAuthority::certificate() const { return ToPem(state_->certificate.get()); }

CertificatePair TestAuthority::Issue(const std::string& name) const {
  const PrivateKey key = MakeKey();
  const Certificate certificate = MakeCertificate(name, key.get());
  X509* issuer = state_->certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  AddExtension(certificate.get(), issuer, NID_subject_alt_name,
               "IP:127.0.0.1,DNS:localhost,DNS:" + name);
  MTMC_CHECK(X509_sign(certificate.get(), state_->key.get(), EVP_sha256()) > 0);
  return {.certificate = ToPem(certificate.get()), .key = ToPem(key.get())};
}

}  // namespace mtmc::testing
