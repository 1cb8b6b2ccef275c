// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/http/http_server.h"

namespace mtmc::metrics {

class Registry;

// Something that a daemon works with: its store, its device, another daemon.
struct Dependency {
  // A word in lower case, a label's value.
  std::string name;
  // Without it the daemon can serve nothing: /readyz is 503. Others are only told.
  bool is_required = true;
  // OK when it is there, else why not. Called on the endpoint's thread for each
  // /readyz and /metrics; may take milliseconds, not more.
  std::function<absl::Status()> check;
};

// The answer to a path that nothing is served at: 404, with those of HttpEndpoint.
http::Response NoSuchPath();

// The HTTP side of a daemon, for Prometheus and Kubernetes:
//
// | path     | answer                                                            |
// | /metrics | the registry, text format 0.0.4                                   |
// | /healthz | 200 "ok" as long as the process answers                           |
// | /readyz  | 200, or 503 while it should get no traffic: a line per dependency |
// | others   | what `serve` answers, else 404                                    |
//
//   not ready
//   store: ok
//   gateway: no connection to 127.0.0.1:50153 (can do without)
//   serving: starting
//
// `mtmc_dependency_up{dependency}` says the same to Prometheus.
//
// A service: immovable; serves from Create() to destruction.
class HttpEndpoint {
 public:
  struct Options {
    // host:port; port 0 takes a free one.
    std::string address = "127.0.0.1:0";
    // In the order in which /readyz lists them.
    std::vector<Dependency> dependencies;
    // As http::Server::Options::serve, for all other paths.
    std::function<void(const http::Request&, http::ResponseWriter&)> serve;
    // Serves HTTPS at the same address, too.
    std::optional<http::TlsFiles> tls = {};
  };

  // UNAVAILABLE with reason PORT_TAKEN, INVALID_ARGUMENT with reason
  // ADDRESS_INVALID or TLS_FILE_INVALID. `registry` is borrowed and outlives the endpoint.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Create(Registry& registry, Options options);

  ~HttpEndpoint();

  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  int port() const;

 private:
  explicit HttpEndpoint(std::unique_ptr<http::Server> server);

  std::unique_ptr<http::Server> server_;
};

}  // namespace mtmc::metrics
