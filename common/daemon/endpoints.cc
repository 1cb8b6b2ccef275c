// SPDX-License-Identifier: Apache-2.0
#include "common/daemon/endpoints.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/metrics/http_endpoint.h"
#include "common/rpc/server.h"

namespace mtmc::daemon {

Endpoints::Endpoints() = default;

Endpoints::~Endpoints() = default;

absl::StatusOr<std::unique_ptr<Endpoints>> Endpoints::Open(const Flags& flags,
                                                           const metrics::Registry& registry,
                                                           const Options& options) {
  std::unique_ptr<Endpoints> endpoints(new Endpoints());
  if (!options.services.empty()) {
    MTMC_ASSIGN_OR_RETURN(
        endpoints->server_,
        rpc::RpcServer::Create({.address = flags.listen, .services = options.services}));
  }
  if (!flags.http.empty()) {
    MTMC_ASSIGN_OR_RETURN(endpoints->http_,
                          metrics::HttpEndpoint::Create(
                              registry, {.address = flags.http, .readiness = options.readiness}));
  }
  if (!flags.ready_file.empty()) {
    const std::string ready =
        absl::StrCat("{\"grpc\":\"", endpoints->grpc_address(), "\",\"http\":\"",
                     endpoints->http_address(), "\",\"pid\":", ::getpid(), "}\n");
    MTMC_RETURN_IF_ERROR(
        base::Prefix(base::WriteFileAtomically(flags.ready_file, ready), "--ready-file"));
  }
  return endpoints;
}

std::string Endpoints::grpc_address() const { return server_ ? server_->address() : ""; }

std::string Endpoints::http_address() const {
  return http_ ? absl::StrCat("127.0.0.1:", http_->port()) : "";
}

void Endpoints::Shutdown(absl::Time deadline) {
  if (server_) server_->Shutdown(deadline);
}

}  // namespace mtmc::daemon
