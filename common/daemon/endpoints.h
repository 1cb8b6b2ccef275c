// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/daemon/flags.h"
#include "common/metrics/http_endpoint.h"

namespace grpc {
class Service;
}

namespace mtmc::rest {
class RestGateway;
}

namespace mtmc::rpc {
class RpcServer;
}

namespace mtmc::access {
class Guard;
}

namespace mtmc::daemon {

// A service, and its name in the contract, such as `mtmc.v1.JobService`. The service is
// borrowed and outlives the endpoints.
struct NamedService {
  grpc::Service* service = nullptr;
  std::string name;
};

// Where a daemon is reached: gRPC, HTTP, and the file that tells whoever started
// it the two addresses:
//
//   {"grpc":"127.0.0.1:50152","http":"127.0.0.1:9152","pid":4711}
//
// An address is empty if nothing is served there. HTTP opens first, so that a
// daemon that takes long to start is seen alive and not ready:
//
//   auto endpoints = Endpoints::OpenHttp(flags, registry, dependencies);
//   ...                                  // load a model, open a store
//   (*endpoints)->Serve({...});
//
// A service: immovable; serves from OpenHttp() to Shutdown().
class Endpoints {
 public:
  struct Options {
    // Empty serves no gRPC.
    std::vector<NamedService> services;
    // Names of those that are served as JSON on the HTTP address, too, such as
    // `mtmc.v1.JobService` (docs/rest.md).
    std::vector<std::string> rest_services = {};
    // As HttpEndpoint::Options::dependencies.
    std::vector<metrics::Dependency> dependencies = {};
  };

  // Opens /healthz, /metrics and /readyz where `flags` say. The last lists
  // `dependencies`, and `serving`, which is there from Serve() to Shutdown().
  // `registry` is borrowed and outlives the endpoints. Errors are those of
  // HttpEndpoint (PORT_TAKEN, ADDRESS_INVALID).
  static absl::StatusOr<std::unique_ptr<Endpoints>> OpenHttp(
      const Flags& flags, metrics::Registry& registry,
      std::vector<metrics::Dependency> dependencies);

  // Opens gRPC for `services`, none where there are none, and REST for those of
  // `rest_services`; counts the calls (CountCalls), and writes the ready file last,
  // atomically. With --tokens, both are behind an access::Guard. Errors are those of
  // RpcServer, Guard and of writing the file, and INVALID_ARGUMENT with reason
  // HTTP_INSECURE if others would reach REST without TLS. With a certificate, HTTP takes
  // TLS, too; /healthz, /readyz and /metrics are also served in clear, REST to this host alone.
  // REQUIRES: called once.
  absl::Status Serve(const std::vector<NamedService>& services,
                     const std::vector<std::string>& rest_services = {});

  // Both at once.
  static absl::StatusOr<std::unique_ptr<Endpoints>> Open(const Flags& flags,
                                                         metrics::Registry& registry,
                                                         const Options& options);

  // Shuts down without grace.
  ~Endpoints();

  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  // host:port with the bound port, for clients on this host; empty if not served.
  std::string grpc_address() const;
  std::string http_address() const;

  // Takes no new calls; those in flight are cancelled at `deadline`. Blocks until
  // all have ended. HTTP goes on, not ready, so that the end can be watched.
  void Shutdown(absl::Time deadline);

 private:
  Endpoints(Flags flags, metrics::Registry& registry);

  absl::Status ServeGrpc(const std::vector<NamedService>& services);
  bool IsRestEncrypted() const;

  const Flags flags_;
  metrics::Registry& registry_;
  // Asked by the thread of HTTP.
  std::atomic<bool> is_serving_ = false;
  base::RealClock clock_;
  // In the order in which they use each other.
  std::unique_ptr<access::Guard> guard_;
  std::vector<std::unique_ptr<grpc::Service>> gated_;
  std::unique_ptr<rpc::RpcServer> server_;
  std::unique_ptr<rest::RestGateway> rest_;
  // `rest_` once it serves.
  std::atomic<const rest::RestGateway*> serving_rest_ = nullptr;
  std::unique_ptr<metrics::HttpEndpoint> http_;
};

}  // namespace mtmc::daemon
