// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/endpoints.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/daemon/call_metrics.h"
#include "common/metrics/http_endpoint.h"
#include "common/rest/rest_gateway.h"
#include "common/rpc/server.h"

namespace mtmc::daemon {

Endpoints::Endpoints(Flags flags, metrics::Registry& registry)
    : flags_(std::move(flags)), registry_(registry) {}

Endpoints::~Endpoints() = default;

absl::StatusOr<std::unique_ptr<Endpoints>> Endpoints::OpenHttp(
    const Flags& flags, metrics::Registry& registry,
    std::vector<metrics::Dependency> dependencies) {
  std::unique_ptr<Endpoints> endpoints(new Endpoints(flags, registry));
  if (flags.http.empty()) return endpoints;
  dependencies.push_back({.name = "serving", .check = [self = endpoints.get()] {
                            return self->is_serving_ ? absl::OkStatus()
                                                     : absl::UnavailableError("starts or stops");
                          }});
  metrics::HttpEndpoint::Options http{.address = flags.http,
                                      .dependencies = std::move(dependencies)};
  http.serve = [self = endpoints.get()](const http::Request& request,
                                        http::ResponseWriter& writer) {
    if (const rest::RestGateway* rest = self->serving_rest_) return rest->Serve(request, writer);
    writer.Send(metrics::NoSuchPath());
  };
  MTMC_ASSIGN_OR_RETURN(endpoints->http_, metrics::HttpEndpoint::Create(registry, std::move(http)));
  return endpoints;
}

absl::Status Endpoints::Serve(const std::vector<grpc::Service*>& services,
                              const std::vector<std::string>& rest_services) {
  if (!services.empty()) {
    MTMC_ASSIGN_OR_RETURN(server_, rpc::RpcServer::Create({.address = flags_.listen,
                                                           .services = services,
                                                           .on_call = CountCalls(registry_)}));
  }
  if (server_ && !rest_services.empty()) {
    MTMC_ASSIGN_OR_RETURN(
        rest_, rest::RestGateway::Create(server_->MakeInProcessChannel(), rest_services));
    serving_rest_ = rest_.get();
  }
  is_serving_ = true;
  if (flags_.ready_file.empty()) return absl::OkStatus();
  const std::string ready = absl::StrCat("{\"grpc\":\"", grpc_address(), "\",\"http\":\"",
                                         http_address(), "\",\"pid\":", ::getpid(), "}\n");
  return base::Prefix(base::WriteFileAtomically(flags_.ready_file, ready), "--ready-file");
}

absl::StatusOr<std::unique_ptr<Endpoints>> Endpoints::Open(const Flags& flags,
                                                           metrics::Registry& registry,
                                                           const Options& options) {
  MTMC_ASSIGN_OR_RETURN(std::unique_ptr<Endpoints> endpoints,
                        OpenHttp(flags, registry, options.dependencies));
  MTMC_RETURN_IF_ERROR(endpoints->Serve(options.services, options.rest_services));
  return endpoints;
}

std::string Endpoints::grpc_address() const { return server_ ? server_->address() : ""; }

std::string Endpoints::http_address() const {
  return http_ ? absl::StrCat("127.0.0.1:", http_->port()) : "";
}

void Endpoints::Shutdown(absl::Time deadline) {
  is_serving_ = false;
  if (server_) server_->Shutdown(deadline);
}

}  // namespace mtmc::daemon
