// SPDX-License-Identifier: Apache-2.0
#include "common/http/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"

namespace mtmc::http {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr absl::Duration kLookEvery = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Create(TlsFiles files) {
  std::unique_ptr<TlsContext> made(new TlsContext(std::move(files)));
  made->times_ = made->WriteTimes();
  MTMC_ASSIGN_OR_RETURN(made->context_, made->Read());
  return made;
}

TlsContext::Context TlsContext::Current() {
  const absl::Time now = absl::Now();
  if (now < next_look_) return context_;
  next_look_ = now + kLookEvery;
  Times times = WriteTimes();
  if (times == times_) return context_;
  absl::StatusOr<Context> read = Read();
  if (!read.ok()) {
    base::Log(base::LogLevel::kWarning, "certificates of HTTP cannot be read anew",
              {{"error", read.status()}});
    return context_;
  }
  times_ = std::move(times);
  return context_ = *std::move(read);
}

absl::StatusOr<TlsContext::Context> TlsContext::Read() const {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  error_code error;
  const auto invalid = [&](const std::string& file) {
    ERR_clear_error();  // OpenSSL keeps a list for each thread.
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "TLS_FILE_INVALID",
                          absl::StrCat("\"", file, "\" cannot be used: ", error.message()),
                          {{"file", file}});
  };
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->use_certificate_chain_file(files_.cert_file, error);
  if (error) return invalid(files_.cert_file);
  // Also of a key that is not the certificate's.
  context->use_private_key_file(files_.key_file, ssl::context::pem, error);
  if (error) return invalid(files_.key_file);
  if (files_.client_ca_file.empty()) return context;
  context->load_verify_file(files_.client_ca_file, error);
  if (error) return invalid(files_.client_ca_file);
  context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  return context;
}

TlsContext::Times TlsContext::WriteTimes() const {
  Times times;
  for (const std::string& file : {files_.cert_file, files_.key_file, files_.client_ca_file}) {
    std::error_code ignored;
    times.push_back(std::filesystem::last_write_time(file, ignored));
  }
  return times;
}

}  // namespace mtmc::http
