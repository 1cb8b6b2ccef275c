// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/daemon/flags.h"

namespace grpc {
class Service;
}

namespace mtmc::metrics {
class HttpEndpoint;
class Registry;
}  // namespace mtmc::metrics

namespace mtmc::rpc {
class RpcServer;
}

namespace mtmc::daemon {

// Where a daemon is reached: gRPC, HTTP, and the file that tells whoever started
// it the two addresses:
//
//   {"grpc":"127.0.0.1:50152","http":"127.0.0.1:9152","pid":4711}
//
// An address is empty if nothing is served there. A service: immovable; serves
// from Open() to Shutdown().
class Endpoints {
 public:
  struct Options {
    // Borrowed; they outlive the endpoints. Empty serves no gRPC.
    std::vector<grpc::Service*> services;
    // What /readyz answers; as HttpEndpoint::Options::readiness.
    std::function<absl::Status()> readiness = [] { return absl::OkStatus(); };
  };

  // Opens what `flags` name, and writes the ready file last, atomically. Errors
  // are those of RpcServer and HttpEndpoint (PORT_TAKEN, ADDRESS_INVALID), and of
  // writing the file. `registry` is borrowed and outlives the endpoints.
  static absl::StatusOr<std::unique_ptr<Endpoints>> Open(const Flags& flags,
                                                         const metrics::Registry& registry,
                                                         const Options& options);

  // Shuts down without grace.
  ~Endpoints();

  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  // host:port with the bound port, for clients on this host; empty if not served.
  std::string grpc_address() const;
  std::string http_address() const;

  // Takes no new calls; those in flight are cancelled at `deadline`. Blocks until
  // all have ended. HTTP goes on, so that the end can be watched.
  void Shutdown(absl::Time deadline);

 private:
  Endpoints();

  std::unique_ptr<rpc::RpcServer> server_;
  std::unique_ptr<metrics::HttpEndpoint> http_;
};

}  // namespace mtmc::daemon
