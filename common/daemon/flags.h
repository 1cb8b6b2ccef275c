// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "common/rpc/security.h"

namespace CLI {
class App;
}

namespace mtmc::daemon {

// The flags that every daemon has, with the defaults that the daemon sets before
// it declares them. A value.
//
//   daemon::Flags flags{.listen = "127.0.0.1:50152", .http = "127.0.0.1:9152"};
//   CLI::App app("What it does.", "mtmc-policyd");
//   daemon::Declare(app, flags);
//   app.add_option(...);  // its own
//   if (const auto code = daemon::ParseAndInitLogging(app, argc, argv, flags)) return *code;
struct Flags {
  // host:port of gRPC; port 0 takes a free one. Empty for a daemon without
  // services: then there is no flag either.
  std::string listen;
  // host:port of /metrics, /healthz and /readyz; empty switches them off.
  std::string http;
  // Written once the daemon serves; empty writes none.
  std::string ready_file;
  // Also the variable MTMC_LOG.
  std::string log_level = "info";
  // "text" or "json"; also the variable MTMC_LOG_FORMAT.
  std::string log_format = "text";
  // Collector of traces; empty traces nothing. Also the variable
  // OTEL_EXPORTER_OTLP_ENDPOINT.
  std::string otlp_endpoint;
  // Who the process is, to its clients and to the servers that it calls (docs/access.md).
  std::string tls_cert;
  std::string tls_key;
  bool is_insecure = false;
  // Of its clients.
  std::string tls_client_ca;
  std::string tokens;
  // Who else is let in: whose JWT a key of this file signed for this audience.
  std::string jwt_keys;
  std::string jwt_issuer;
  std::string jwt_audience = "mtmc";
  std::string jwt_grants_claim = "mtmc_grants";
  std::string audit_log;
  double requests_per_second = 0;
  bool is_insecure_http = false;
  // For the servers that it calls.
  std::string tls_ca;
  std::string token_file;
};

// Adds --http, --ready-file, --version, --tls-cert, --tls-key, --tls-ca and those of logs
// and traces to `app`, whose name is the program's, and --listen with what secures it if
// there are services. Both arguments outlive the parsing.
void Declare(CLI::App& app, Flags& flags);

// Adds --token-file, for a daemon that calls other daemons, after Declare().
void DeclareChannels(CLI::App& app, Flags& flags);

// Whether callers are asked who they are.
bool HasGuard(const Flags& flags);

// What the flags say about the daemon's server and its channels.
rpc::ServerSecurity ServerSecurityOf(const Flags& flags);
rpc::ChannelSecurity ChannelSecurityOf(const Flags& flags);

// Parses the command line and starts logging at the level it names. Returns the
// exit code if the process is to end now: after --help and --version with
// kExitOk, for a command line at fault with kExitUsage and a message.
std::optional<int> ParseAndInitLogging(CLI::App& app, int argc, char** argv, const Flags& flags);

}  // namespace mtmc::daemon
