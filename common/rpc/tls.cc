// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/tls.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

namespace mtmc::rpc {
namespace {

using grpc::experimental::FileWatcherCertificateProvider;

// How often the files are looked at; gRPC takes no less.
constexpr unsigned kRefreshSeconds = 1;

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeCredentials(const ServerSecurity& security) {
  if (!security.has_tls()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<FileWatcherCertificateProvider>(security.key_file, security.cert_file,
                                                       security.client_ca_file, kRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  if (security.client_ca_file.empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  } else {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> MakeCredentials(const ChannelSecurity& security) {
  if (!security.has_tls()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<FileWatcherCertificateProvider>(
      security.key_file, security.cert_file, security.ca_file, kRefreshSeconds));
  options.watch_root_certs();
  if (!security.cert_file.empty()) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace mtmc::rpc
