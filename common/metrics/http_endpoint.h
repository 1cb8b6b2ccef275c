// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mtmc::metrics {

class Registry;

// The HTTP side of a daemon, for Prometheus and Kubernetes:
//
// | path     | answer                                                          |
// | /metrics | the registry, text format 0.0.4                                 |
// | /healthz | 200 "ok" as long as the process answers                         |
// | /readyz  | 200 "ok", or 503 with the reason while it should get no traffic |
//
// One thread of its own serves one short connection after the other, with a
// limit of 5 s and 8 KiB of request each: a stuck client delays the next scrape
// and harms nothing else.
//
// A service: immovable; serves from Create() to destruction.
class HttpEndpoint {
 public:
  struct Options {
    // host:port; port 0 takes a free one.
    std::string address = "127.0.0.1:0";
    // OK when ready, else why not. Called on the endpoint's thread for each
    // /readyz; must not block.
    std::function<absl::Status()> readiness = [] { return absl::OkStatus(); };
  };

  // UNAVAILABLE with reason PORT_TAKEN, INVALID_ARGUMENT with reason
  // ADDRESS_INVALID. `registry` is borrowed and outlives the endpoint.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Create(const Registry& registry,
                                                              Options options);

  ~HttpEndpoint();

  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  int port() const;

 private:
  class Server;

  explicit HttpEndpoint(std::unique_ptr<Server> server);

  std::unique_ptr<Server> server_;
};

}  // namespace mtmc::metrics
