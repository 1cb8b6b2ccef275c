// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace mtmc::rpc {

// How a server proves who it is, and whom it lets connect. All files are PEM, and are
// read anew within seconds of a change. A value.
struct ServerSecurity {
  // Certificate chain and private key; both or none. None is a server without TLS.
  std::string cert_file;
  std::string key_file;
  // Authorities of the certificates that clients must show; empty asks for none.
  std::string client_ca_file;
  // Lets others than this host connect without TLS.
  bool is_insecure = false;

  bool has_tls() const { return !cert_file.empty(); }
};

// How a channel checks its server, and what it shows to it. Files as above. A value.
struct ChannelSecurity {
  // Authorities of the server's certificate; empty is a channel without TLS.
  std::string ca_file;
  // Own certificate chain and private key, for servers that ask; both or none.
  std::string cert_file;
  std::string key_file;
  // File whose first line is the bearer token that goes with each call; read for each
  // call, so that it may be replaced. Empty sends none.
  std::string token_file;
  // Lets the token go to other hosts without TLS.
  bool is_insecure = false;

  bool has_tls() const { return !ca_file.empty(); }
};

// Whether only this host reaches `address`: HOST:PORT with `localhost`, an address of
// 127.0.0.0/8 or `[::1]`, `unix:PATH`, or `ipv4:` with such hosts alone. Names are not
// resolved.
bool IsLoopback(std::string_view address);

// Whether a server at `address` may have `security`. INVALID_ARGUMENT with reason
// TLS_FILE_INVALID or TLS_INCOMPLETE, or LISTENER_INSECURE if others reach the address
// and there is no TLS.
absl::Status Check(const ServerSecurity& security, std::string_view address);

// Whether a channel to `endpoint` may have `security`. INVALID_ARGUMENT with reason
// TLS_FILE_INVALID, TLS_INCOMPLETE, TOKEN_FILE_INVALID, or TOKEN_IN_CLEAR if the token
// would go to another host without TLS.
absl::Status Check(const ChannelSecurity& security, std::string_view endpoint);

}  // namespace mtmc::rpc
