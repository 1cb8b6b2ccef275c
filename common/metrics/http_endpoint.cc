// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/http_endpoint.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/metrics/metrics.h"

namespace mtmc::metrics {
namespace {

http::Response Ready(const std::vector<Dependency>& dependencies) {
  bool is_ready = true;
  std::string lines;
  for (const Dependency& dependency : dependencies) {
    const absl::Status status = dependency.check();
    if (dependency.is_required && !status.ok()) is_ready = false;
    absl::StrAppend(&lines, dependency.name, ": ", status.ok() ? "ok" : status.message(),
                    status.ok() || dependency.is_required ? "\n" : " (can do without)\n");
  }
  return {.status = is_ready ? 200 : 503,
          .body = absl::StrCat(is_ready ? "ready\n" : "not ready\n", lines),
          .headers = {}};
}

void ShowDependencies(const std::vector<Dependency>& dependencies, Registry& registry) {
  for (const Dependency& dependency : dependencies) {
    registry
        .MakeGauge("mtmc_dependency_up",
                   "Whether what the daemon works with is there, as /readyz lists it: 1, or 0.",
                   {{"dependency", dependency.name}})
        .Set(dependency.check().ok() ? 1 : 0);
  }
}

std::optional<http::Response> Answer(const http::Request& request, Registry& registry,
                                     const HttpEndpoint::Options& options) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  const bool is_ours = path == "/metrics" || path == "/healthz" || path == "/readyz";
  if (!is_ours && options.serve) return std::nullopt;
  if (request.method != "GET" && request.method != "HEAD") {
    return http::Response{.status = 405, .body = "", .headers = {}};
  }
  if (path == "/readyz") return Ready(options.dependencies);
  if (path == "/healthz") return http::Response{.body = "ok\n", .headers = {}};
  if (path == "/metrics") {
    ShowDependencies(options.dependencies, registry);
    return http::Response{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                          .body = registry.Render(),
                          .headers = {}};
  }
  return NoSuchPath();
}

}  // namespace

http::Response NoSuchPath() {
  return {.status = 404, .body = "paths: /metrics /healthz /readyz\n", .headers = {}};
}

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Create(Registry& registry,
                                                                   Options options) {
  http::Server::Options served;
  served.address = options.address;
  served.serve = options.serve;
  served.tls = options.tls;
  served.answer = [&registry, options = std::move(options)](const http::Request& request) {
    return Answer(request, registry, options);
  };
  MTMC_ASSIGN_OR_RETURN(auto server, http::Server::Create(std::move(served)));
  return std::unique_ptr<HttpEndpoint>(new HttpEndpoint(std::move(server)));
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<http::Server> server) : server_(std::move(server)) {}

HttpEndpoint::~HttpEndpoint() = default;

int HttpEndpoint::port() const { return server_->port(); }

}  // namespace mtmc::metrics
