// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/endpoints.h"

#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/server_interceptor.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/access/guard.h"
#include "common/base/annotate.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/daemon/call_metrics.h"
#include "common/metrics/http_endpoint.h"
#include "common/rest/rest_gateway.h"
#include "common/rpc/error.h"
#include "common/rpc/gate.h"
#include "common/rpc/server.h"

namespace mtmc::daemon {
namespace {

http::Response UseHttps() {
  return {.status = 403, .body = "REST is not served in clear; call https://\n", .headers = {}};
}

}  // namespace

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
  // One without the other is told of where it is used.
  if (!flags.tls_cert.empty() && !flags.tls_key.empty()) {
    http.tls = {.cert_file = flags.tls_cert,
                .key_file = flags.tls_key,
                .client_ca_file = flags.tls_client_ca};
  }
  http.serve = [self = endpoints.get()](const http::Request& request,
                                        http::ResponseWriter& writer) {
    if (self->IsRestEncrypted() && !request.is_encrypted) return writer.Send(UseHttps());
    if (const rest::RestGateway* rest = self->serving_rest_) return rest->Serve(request, writer);
    writer.Send(metrics::NoSuchPath());
  };
  MTMC_ASSIGN_OR_RETURN(endpoints->http_, metrics::HttpEndpoint::Create(registry, std::move(http)));
  return endpoints;
}

// Tokens may not go to other hosts in clear.
bool Endpoints::IsRestEncrypted() const {
  return !flags_.is_insecure_http && !rpc::IsLoopback(flags_.http);
}

absl::Status Endpoints::ServeGrpc(const std::vector<NamedService>& services) {
  rpc::RpcServer::Options options{.address = flags_.listen,
                                  .on_call = CountCalls(registry_),
                                  .security = ServerSecurityOf(flags_)};
  if (HasGuard(flags_)) {
    access::Guard::Options guard{.token_file = flags_.tokens,
                                 .audit_log = flags_.audit_log,
                                 .requests_per_second = flags_.requests_per_second};
    if (!flags_.jwt_keys.empty()) {
      guard.jwt = {.key_file = flags_.jwt_keys,
                   .rules = {.issuer = flags_.jwt_issuer,
                             .audience = flags_.jwt_audience,
                             .grants_claim = flags_.jwt_grants_claim}};
    }
    MTMC_ASSIGN_OR_RETURN(guard_, access::Guard::Create(guard, clock_));
    options.interceptors.push_back([this] { return rpc::MakeGateInterceptor(*guard_); });
  }
  for (const NamedService& named : services) {
    if (guard_) gated_.push_back(rpc::PutBehindGate(*named.service, named.name));
    options.services.push_back(guard_ ? gated_.back().get() : named.service);
  }
  MTMC_ASSIGN_OR_RETURN(server_, rpc::RpcServer::Create(options));
  return absl::OkStatus();
}

absl::Status Endpoints::Serve(const std::vector<NamedService>& services,
                              const std::vector<std::string>& rest_services) {
  const bool has_rest = !flags_.http.empty() && !rest_services.empty();
  if (has_rest && IsRestEncrypted() && flags_.tls_cert.empty()) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "HTTP_INSECURE",
                          absl::StrCat("REST at ", flags_.http,
                                       " is reached by other hosts without TLS; give --tls-cert "
                                       "and --tls-key, give --http an address of 127.0.0.1, or "
                                       "say --insecure-http"));
  }
  if (!services.empty()) MTMC_RETURN_IF_ERROR(ServeGrpc(services));
  if (server_ && has_rest) {
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
