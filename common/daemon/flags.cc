// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/string_view.h"
#include "common/config/version.h"
#include "common/daemon/exit_code.h"

namespace mtmc::daemon {
namespace {

// Of a daemon with services.
void DeclareServer(CLI::App& app, Flags& flags) {
  app.add_option("--listen", flags.listen, "gRPC address HOST:PORT; port 0 takes a free one")
      ->capture_default_str();
  app.add_option("--tls-client-ca", flags.tls_client_ca,
                 "authorities of the certificates that clients must show, PEM");
  app.add_option("--tokens", flags.tokens,
                 "file of who may do what, with the hashes of their tokens");
  auto* keys = app.add_option("--jwt-keys", flags.jwt_keys,
                              "JWKS file; who has a JWT that one of its keys signed is let in");
  auto* issuer = app.add_option("--jwt-issuer", flags.jwt_issuer, "claim iss of those JWT");
  keys->needs(issuer);
  issuer->needs(keys);
  app.add_option("--jwt-audience", flags.jwt_audience, "one of their claim aud")
      ->capture_default_str()
      ->needs(keys);
  app.add_option("--jwt-grants-claim", flags.jwt_grants_claim,
                 "their claim with texts mtmc:ROLE:PROJECT, such as groups")
      ->capture_default_str()
      ->needs(keys);
  app.add_option("--audit-log", flags.audit_log, "file that gets a line for each changing call");
  app.add_option("--requests-per-second", flags.requests_per_second,
                 "most calls a second of one caller that is no worker; 0 is no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--insecure-http", flags.is_insecure_http,
               "serve REST to other hosts, also without TLS");
}

// To clients, to other daemons and to the collector of traces.
void DeclareIdentity(CLI::App& app, Flags& flags) {
  app.add_option("--tls-cert", flags.tls_cert, "certificate chain of this process, PEM");
  app.add_option("--tls-key", flags.tls_key, "its private key, PEM");
  app.add_option("--tls-ca", flags.tls_ca,
                 "authorities of the servers that are called, PEM; without it there is no TLS");
  app.add_flag("--insecure", flags.is_insecure, "talk to other hosts without TLS");
}

void DeclareSight(CLI::App& app, Flags& flags) {
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->envname("MTMC_LOG")
      ->capture_default_str();
  app.add_option("--log-format", flags.log_format, "text, or json: one object a line")
      ->envname("MTMC_LOG_FORMAT")
      ->capture_default_str();
  app.add_option("--otlp-endpoint", flags.otlp_endpoint,
                 "collector that gets traces by OTLP over gRPC, HOST:PORT or URL; empty traces "
                 "nothing")
      ->envname("OTEL_EXPORTER_OTLP_ENDPOINT");
}

}  // namespace

void Declare(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version",
                       absl::StrCat(app.get_name(), " ", base::ToAbsl(config::Version())));
  if (!flags.listen.empty()) DeclareServer(app, flags);
  DeclareIdentity(app, flags);
  app.add_option("--http", flags.http,
                 "address of /metrics, /healthz and /readyz; empty switches them off")
      ->capture_default_str();
  app.add_option("--ready-file", flags.ready_file, "JSON file written once the daemon serves");
  DeclareSight(app, flags);
}

void DeclareChannels(CLI::App& app, Flags& flags) {
  app.add_option("--token-file", flags.token_file,
                 "file whose first line is the token for the servers that are called");
}

bool HasGuard(const Flags& flags) { return !flags.tokens.empty() || !flags.jwt_keys.empty(); }

rpc::ServerSecurity ServerSecurityOf(const Flags& flags) {
  return {.cert_file = flags.tls_cert,
          .key_file = flags.tls_key,
          .client_ca_file = flags.tls_client_ca,
          .is_insecure = flags.is_insecure};
}

// A certificate is shown to servers that have one themselves.
rpc::ChannelSecurity ChannelSecurityOf(const Flags& flags) {
  rpc::ChannelSecurity security{
      .ca_file = flags.tls_ca, .token_file = flags.token_file, .is_insecure = flags.is_insecure};
  if (!security.has_tls()) return security;
  security.cert_file = flags.tls_cert;
  security.key_file = flags.tls_key;
  return security;
}

std::optional<int> ParseAndInitLogging(CLI::App& app, int argc, char** argv, const Flags& flags) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const auto level = base::ParseLogLevel(flags.log_level);
  const auto format = base::ParseLogFormat(flags.log_format);
  base::InitLogging({.program = app.get_name(),
                     .level = level.value_or(base::LogLevel::kInfo),
                     .format = format.value_or(base::LogFormat::kText)});
  if (!format.ok()) return FailUsage("unusable --log-format", format.status());
  if (!level.ok()) return FailUsage("unusable --log-level", level.status());
  if (!HasGuard(flags) && (!flags.audit_log.empty() || flags.requests_per_second > 0)) {
    return FailUsage("unusable flags", absl::InvalidArgumentError(
                                           "--audit-log and --requests-per-second need to know "
                                           "who calls; give --tokens or --jwt-keys"));
  }
  return std::nullopt;
}

}  // namespace mtmc::daemon
