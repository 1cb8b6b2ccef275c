// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_server.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/http/connection.h"
#include "common/http/tls_context.h"
#include "common/rpc/error.h"

namespace mtmc::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr int kBacklog = 128;

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
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  error_code error;
  const auto parsed = asio::ip::make_address(host, error);
  if (error) return AddressInvalid(address, "host must be an IP address or localhost");
  return tcp::endpoint(parsed, static_cast<unsigned short>(port));
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)), acceptor_(context_) {}

  ~Impl() {
    // First the sockets, so that whoever writes or waits on one comes back.
    asio::post(context_, [this] {
      is_closing_ = true;
      error_code ignored;
      acceptor_.close(ignored);
      for (const auto& connection : std::set(connections_)) connection->Close();
    });
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(
          +[](int* serving) { return *serving == 0; }, &num_serving_));
    }
    context_.stop();
  }

  absl::Status Listen() {
    if (options_.tls) {
      MTMC_ASSIGN_OR_RETURN(tls_, TlsContext::Create(*options_.tls));
    }
    MTMC_ASSIGN_OR_RETURN(const tcp::endpoint endpoint, ParseAddress(options_.address));
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kBacklog, error);
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
  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (is_closing_ || error == asio::error::operation_aborted) return;
      if (!error) Take(std::move(socket));
      Accept();
    });
  }

  void Take(tcp::socket socket) {
    auto connection = std::make_shared<Connection>(std::move(socket), options_.max_body_bytes,
                                                   tls_ ? tls_->Current() : nullptr);
    connections_.insert(connection);
    connection->Read([this, connection](std::optional<Request> request) {
      if (!request || is_closing_) return void(connections_.erase(connection));
      Dispatch(connection, *std::move(request));
    });
  }

  void Dispatch(const std::shared_ptr<Connection>& connection, Request request) {
    std::optional<Response> quick =
        options_.answer ? options_.answer(request) : std::optional<Response>();
    if (!quick && !options_.serve) quick = Response{.status = 404, .body = "", .headers = {}};
    if (!quick && !Enter()) {
      quick = Response{.status = 503,
                       .body = "too many requests at a time; try again\n",
                       .headers = {{"Retry-After", "1"}}};
    }
    if (quick) {
      connections_.erase(connection);
      return connection->Reply(*std::move(quick));
    }
    connection->WatchForEnd();
    std::thread([this, connection, request = std::move(request)] {
      options_.serve(request, *connection);
      connection->Release();
      asio::post(context_, [this, connection] {
        connection->Finish();
        connections_.erase(connection);
        Leave();
      });
    }).detach();
  }

  bool Enter() {
    absl::MutexLock lock(&mu_);
    if (num_serving_ == options_.max_serving) return false;
    ++num_serving_;
    return true;
  }

  void Leave() {
    absl::MutexLock lock(&mu_);
    --num_serving_;
  }

  const Options options_;
  asio::io_context context_{/*concurrency_hint=*/1};
  // Who serves posts to the server's thread when all sockets are closed, too.
  const asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  tcp::acceptor acceptor_;
  int port_ = 0;
  // Null without certificates. On the server's thread, as what follows.
  std::unique_ptr<TlsContext> tls_;
  bool is_closing_ = false;
  std::set<std::shared_ptr<Connection>> connections_;

  absl::Mutex mu_;
  int num_serving_ ABSL_GUARDED_BY(mu_) = 0;

  std::jthread thread_;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Create(Options options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  MTMC_RETURN_IF_ERROR(impl->Listen());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() = default;

int Server::port() const { return impl_->port(); }

}  // namespace mtmc::http
