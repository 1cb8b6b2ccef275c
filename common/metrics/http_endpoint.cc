// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/http_endpoint.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/metrics/metrics.h"
#include "common/rpc/error.h"

namespace mtmc::metrics {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

constexpr auto kConnectionLimit = std::chrono::seconds(5);
constexpr std::size_t kMaxRequestBytes = 8192;

absl::Status AddressInvalid(const std::string& address, const std::string& why) {
  return rpc::MakeError(absl::StatusCode::kInvalidArgument, "ADDRESS_INVALID",
                        absl::StrCat("address \"", address, "\": ", why));
}

absl::StatusOr<tcp::endpoint> ParseAddress(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  int port = 0;
  if (colon == address.npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return AddressInvalid(address, "must be host:port");
  }
  std::string host = address.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  boost::system::error_code error;
  const auto parsed = asio::ip::make_address(host, error);
  if (error) return AddressInvalid(address, "host must be an IP address or localhost");
  return tcp::endpoint(parsed, static_cast<unsigned short>(port));
}

}  // namespace

class HttpEndpoint::Server {
 public:
  Server(Registry& registry, Options options)
      : registry_(registry), options_(std::move(options)), acceptor_(context_) {}

  ~Server() { context_.stop(); }

  absl::Status Listen() {
    MTMC_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, ParseAddress(options_.address));
    boost::system::error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(/*backlog=*/16, error);
    if (error == asio::error::address_in_use) {
      return rpc::MakeError(
          absl::StatusCode::kUnavailable, "PORT_TAKEN",
          absl::StrCat("address ", options_.address,
                       " is in use by another process; choose another port or stop it"),
          {{"address", options_.address}});
    }
    if (error) return AddressInvalid(options_.address, error.message());
    port_ = acceptor_.local_endpoint().port();
    Accept();
    thread_ = std::jthread([this] { context_.run(); });
    return absl::OkStatus();
  }

  int port() const { return port_; }

 private:
  // What one connection owns while its handlers run.
  struct Connection {
    explicit Connection(tcp::socket socket) : stream(std::move(socket)) {}

    beast::tcp_stream stream;
    beast::flat_buffer buffer{kMaxRequestBytes};
    http::request_parser<http::string_body> parser;
    Response response;
  };

  void Accept() {
    acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return Accept();
      Serve(std::make_shared<Connection>(std::move(socket)));
    });
  }

  // The next connection is taken when this one is over: at most one is open.
  void Serve(const std::shared_ptr<Connection>& connection) {
    connection->parser.body_limit(kMaxRequestBytes);
    connection->stream.expires_after(kConnectionLimit);
    http::async_read(connection->stream, connection->buffer, connection->parser,
                     [this, connection](boost::system::error_code error, std::size_t) {
                       if (error) return Accept();
                       connection->response = Answer(connection->parser.get());
                       http::async_write(
                           connection->stream, connection->response,
                           [this, connection](boost::system::error_code write_error, std::size_t) {
                             Close(*connection, write_error);
                           });
                     });
  }

  void Close(Connection& connection, boost::system::error_code error) {
    if (!error) connection.stream.socket().shutdown(tcp::socket::shutdown_send, error);
    Accept();
  }

  struct Readiness {
    bool is_ready = true;
    std::string text;
  };

  Readiness CheckAll() const {
    Readiness readiness;
    std::string lines;
    for (const Dependency& dependency : options_.dependencies) {
      const absl::Status status = dependency.check();
      if (dependency.is_required && !status.ok()) readiness.is_ready = false;
      absl::StrAppend(&lines, dependency.name, ": ", status.ok() ? "ok" : status.message(),
                      status.ok() || dependency.is_required ? "\n" : " (can do without)\n");
    }
    readiness.text = absl::StrCat(readiness.is_ready ? "ready\n" : "not ready\n", lines);
    return readiness;
  }

  void ShowDependencies() const {
    for (const Dependency& dependency : options_.dependencies) {
      registry_
          .MakeGauge("mtmc_dependency_up",
                     "Whether what the daemon works with is there, as /readyz lists it: 1, or 0.",
                     {{"dependency", dependency.name}})
          .Set(dependency.check().ok() ? 1 : 0);
    }
  }

  Response Answer(const Request& request) const {
    Response response(http::status::ok, request.version());
    response.set(http::field::content_type, "text/plain; charset=utf-8");
    response.keep_alive(false);
    const auto path = request.target().substr(0, request.target().find('?'));
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      response.result(http::status::method_not_allowed);
    } else if (path == "/metrics") {
      response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
      ShowDependencies();
      response.body() = registry_.Render();
    } else if (path == "/healthz") {
      response.body() = "ok\n";
    } else if (path == "/readyz") {
      const Readiness readiness = CheckAll();
      if (!readiness.is_ready) response.result(http::status::service_unavailable);
      response.body() = readiness.text;
    } else {
      response.result(http::status::not_found);
      response.body() = "paths: /metrics /healthz /readyz\n";
    }
    response.prepare_payload();
    // HEAD is the same answer without its body, but with its length.
    if (request.method() == http::verb::head) response.body().clear();
    return response;
  }

  Registry& registry_;
  const Options options_;
  asio::io_context context_{/*concurrency_hint=*/1};
  tcp::acceptor acceptor_;
  int port_ = 0;
  std::jthread thread_;
};

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Create(Registry& registry,
                                                                   Options options) {
  auto server = std::make_unique<Server>(registry, std::move(options));
  MTMC_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<HttpEndpoint>(new HttpEndpoint(std::move(server)));
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Server> server) : server_(std::move(server)) {}

HttpEndpoint::~HttpEndpoint() = default;

int HttpEndpoint::port() const { return server_->port(); }

}  // namespace mtmc::metrics
