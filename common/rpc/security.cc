// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/security.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/rpc/bearer_token.h"
#include "common/rpc/error.h"

namespace mtmc::rpc {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
// Of a certificate chain; a bundle of all public authorities is 200 KiB.
constexpr std::uint64_t kMaxPemBytes = std::uint64_t{4} << 20;

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

absl::Status Invalid(const std::string& file, std::string_view why) {
  ERR_clear_error();  // OpenSSL keeps a list for each thread, which gRPC would print.
  return MakeError(kInvalid, "TLS_FILE_INVALID", absl::StrCat("\"", file, "\" ", base::ToAbsl(why)),
                   {{"file", file}});
}

absl::StatusOr<Bytes> Read(const std::string& file) {
  const absl::StatusOr<std::string> text = base::ReadFile(file, kMaxPemBytes);
  if (!text.ok()) return Invalid(file, absl::StrCat("cannot be read: ", text.status().message()));
  Bytes bytes(BIO_new(BIO_s_mem()));
  BIO_write(bytes.get(), text->data(), static_cast<int>(text->size()));
  return bytes;
}

// The first certificate of a file.
absl::StatusOr<Certificate> ReadCertificate(const std::string& file) {
  MTMC_ASSIGN_OR_RETURN(const Bytes bytes, Read(file));
  Certificate certificate(PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return Invalid(file, "has no certificate in PEM");
  return certificate;
}

// A passphrase would have to be asked for.
int NoPassphrase(char*, int, int, void*) { return 0; }

absl::Status CheckPair(const std::string& cert_file, const std::string& key_file) {
  if (cert_file.empty() != key_file.empty()) {
    return MakeError(kInvalid, "TLS_INCOMPLETE",
                     "--tls-cert and --tls-key belong together; one of them is missing");
  }
  if (cert_file.empty()) return absl::OkStatus();
  MTMC_ASSIGN_OR_RETURN(const Certificate certificate, ReadCertificate(cert_file));
  MTMC_ASSIGN_OR_RETURN(const Bytes bytes, Read(key_file));
  const PrivateKey key(PEM_read_bio_PrivateKey(bytes.get(), nullptr, &NoPassphrase, nullptr));
  if (key == nullptr) return Invalid(key_file, "has no private key in PEM without a passphrase");
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return absl::OkStatus();
  return Invalid(key_file,
                 absl::StrCat("is not the key of the certificate in \"", cert_file, "\""));
}

bool IsLoopbackHost(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "[::1]";
}

}  // namespace

bool IsLoopback(std::string_view address) {
  if (address.starts_with("unix:")) return true;
  for (const std::string_view scheme : {"ipv4:", "ipv6:", "dns:///", "dns:"}) {
    if (!address.starts_with(scheme)) continue;
    address.remove_prefix(scheme.size());
    break;
  }
  for (const absl::string_view one : absl::StrSplit(base::ToAbsl(address), ',')) {
    const std::string_view host_port = base::ToStd(one);
    // A name such as 127.evil.example is none of ours, but resolves to anything.
    const std::string_view host = host_port.substr(0, host_port.rfind(':'));
    const bool is_name = host != "localhost" && !host.starts_with('[') &&
                         host.find_first_not_of("0123456789.") != host.npos;
    if (is_name || !IsLoopbackHost(host)) return false;
  }
  return true;
}

absl::Status Check(const ServerSecurity& security, std::string_view address) {
  MTMC_RETURN_IF_ERROR(CheckPair(security.cert_file, security.key_file));
  if (!security.client_ca_file.empty()) {
    if (!security.has_tls()) {
      return MakeError(kInvalid, "TLS_INCOMPLETE",
                       "--tls-client-ca needs --tls-cert and --tls-key");
    }
    MTMC_RETURN_IF_ERROR(ReadCertificate(security.client_ca_file).status());
  }
  if (security.has_tls() || security.is_insecure || IsLoopback(address)) return absl::OkStatus();
  return MakeError(kInvalid, "LISTENER_INSECURE",
                   absl::StrCat("other hosts reach ", base::ToAbsl(address),
                                ", and there is no TLS; give --tls-cert and --tls-key, listen at "
                                "127.0.0.1, or say --insecure"),
                   {{"address", std::string(address)}});
}

absl::Status Check(const ChannelSecurity& security, std::string_view endpoint) {
  MTMC_RETURN_IF_ERROR(CheckPair(security.cert_file, security.key_file));
  if (security.has_tls()) MTMC_RETURN_IF_ERROR(ReadCertificate(security.ca_file).status());
  if (security.token_file.empty()) return absl::OkStatus();
  MTMC_RETURN_IF_ERROR(ReadBearerToken(security.token_file).status());
  if (security.has_tls() || security.is_insecure || IsLoopback(endpoint)) return absl::OkStatus();
  return MakeError(kInvalid, "TOKEN_IN_CLEAR",
                   absl::StrCat("the token would go to ", base::ToAbsl(endpoint),
                                " without TLS; give --tls-ca, or say --insecure"),
                   {{"endpoint", std::string(endpoint)}});
}

}  // namespace mtmc::rpc
