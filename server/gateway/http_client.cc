// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/http_client.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/config/version.h"

namespace mtmc::gateway {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

using ErrorCode = boost::system::error_code;
using Request = http::request<http::string_body>;
using Parser = http::response_parser<http::string_body>;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// The steps of an exchange, for messages and for the meaning of a failure.
enum class Step { kConnect, kSend, kFirstByte, kBody };

std::string_view ToText(Step step) {
  switch (step) {
    case Step::kConnect:
      return "connecting";
    case Step::kSend:
      return "sending the request";
    case Step::kFirstByte:
      return "waiting for the answer";
    case Step::kBody:
      return "reading the answer";
  }
  return "";
}

absl::Status ToStatus(const ErrorCode& error, Step step) {
  const std::string step_text(ToText(step));
  if (error == beast::error::timeout) {
    return absl::DeadlineExceededError(absl::StrCat("out of time while ", step_text));
  }
  const std::string message = absl::StrCat(error.message(), " while ", step_text);
  // Up to here the server has not begun to answer, so that asking again is safe.
  if (step == Step::kConnect || step == Step::kSend) return absl::UnavailableError(message);
  return absl::DataLossError(message);
}

// One POST on one connection. `Stream` is beast's tcp_stream, plain or under TLS.
class Exchange {
 public:
  Exchange(const HttpLimits& limits, absl::Time deadline) : limits_(limits), deadline_(deadline) {}

  absl::StatusOr<HttpResponse> Run(const Url& url, const Request& request) {
    asio::io_context io;
    asio::co_spawn(io, Start(url, request), asio::detached);
    io.run();
    return std::move(result_);
  }

 private:
  asio::awaitable<void> Start(const Url& url, const Request& request) {
    const auto executor = co_await asio::this_coro::executor;
    if (!url.is_secure) {
      beast::tcp_stream stream(executor);
      if (co_await Connect(url, stream)) co_await Talk(stream, stream, request);
      co_return;
    }
    asio::ssl::context tls(asio::ssl::context::tls_client);
    ErrorCode error;
    tls.set_default_verify_paths(error);
    tls.set_verify_mode(asio::ssl::verify_peer, error);
    beast::ssl_stream<beast::tcp_stream> stream(executor, tls);
    stream.set_verify_callback(asio::ssl::host_name_verification(url.host), error);
    // What the macro SSL_set_tlsext_host_name does, without its C casts.
    SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(url.host.c_str()));
    if (!co_await Connect(url, stream.next_layer())) co_return;
    std::tie(error) = co_await stream.async_handshake(asio::ssl::stream_base::client, kAwait);
    if (error) {
      Fail(error, Step::kConnect);
      co_return;
    }
    co_await Talk(stream, stream.next_layer(), request);
  }

  asio::awaitable<bool> Connect(const Url& url, beast::tcp_stream& stream) {
    asio::ip::tcp::resolver resolver(stream.get_executor());
    const auto [resolve_error, endpoints] =
        co_await resolver.async_resolve(url.host, url.port, kAwait);
    if (resolve_error) {
      Fail(resolve_error, Step::kConnect);
      co_return false;
    }
    SetTimeout(stream, limits_.connect_timeout);
    const auto [error, endpoint] = co_await stream.async_connect(endpoints, kAwait);
    if (!error) co_return true;
    // A connection that does not come about in time is one that is not there.
    result_ =
        absl::UnavailableError(absl::StrCat(error.message(), " while connecting to ", url.host));
    co_return false;
  }

  template <typename Stream>
  asio::awaitable<void> Talk(Stream& stream, beast::tcp_stream& socket, const Request& request) {
    SetTimeout(socket, limits_.connect_timeout);
    const auto [send_error, sent] = co_await http::async_write(stream, request, kAwait);
    if (send_error) {
      Fail(send_error, Step::kSend);
      co_return;
    }
    beast::flat_buffer buffer;
    Parser parser;
    parser.body_limit(limits_.max_body_bytes);
    SetTimeout(socket, limits_.first_byte_timeout);
    const auto [head_error, head] =
        co_await http::async_read_header(stream, buffer, parser, kAwait);
    if (head_error) {
      Fail(head_error, Step::kFirstByte);
      co_return;
    }
    SetTimeout(socket, absl::InfiniteDuration());
    const auto [body_error, body] = co_await http::async_read(stream, buffer, parser, kAwait);
    if (body_error) {
      Fail(body_error, Step::kBody);
      co_return;
    }
    result_ = HttpResponse{.status = static_cast<int>(parser.get().result_int()),
                           .body = std::move(parser.get().body()),
                           .retry_after = std::string(parser.get()[http::field::retry_after])};
    // No TLS farewell: the reply is complete by its length, and a peer that
    // does not answer the farewell would hold the caller.
    socket.close();
  }

  // The next operation ends by the earlier of `limit` and the whole deadline.
  void SetTimeout(beast::tcp_stream& stream, absl::Duration limit) {
    const absl::Duration left = std::min(limit, deadline_ - absl::Now());
    // A day is for ever here, and fits the clock of beast.
    const absl::Duration bounded = std::clamp(left, absl::ZeroDuration(), absl::Hours(24));
    stream.expires_after(absl::ToChronoNanoseconds(bounded));
  }

  void Fail(const ErrorCode& error, Step step) { result_ = ToStatus(error, step); }

  const HttpLimits limits_;
  const absl::Time deadline_;
  absl::StatusOr<HttpResponse> result_ = absl::InternalError("the exchange did not finish");
};

}  // namespace

absl::StatusOr<Url> ParseUrl(const std::string& text) {
  const auto parsed = boost::urls::parse_uri(text);
  if (parsed.has_error() || parsed->host().empty() || parsed->has_userinfo() ||
      parsed->has_query() || (parsed->scheme() != "http" && parsed->scheme() != "https")) {
    return absl::InvalidArgumentError(
        "the base URL is not of the form https://HOST[:PORT]/PATH without user and query");
  }
  Url url{.is_secure = parsed->scheme() == "https",
          .host = std::string(parsed->host()),
          .port = std::string(parsed->port()),
          .path = std::string(parsed->encoded_path())};
  if (url.port.empty()) url.port = url.is_secure ? "443" : "80";
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  return url;
}

absl::StatusOr<HttpResponse> PostJson(const Url& url,
                                      const std::map<std::string, std::string>& headers,
                                      std::string body, const HttpLimits& limits,
                                      absl::Time deadline) {
  if (absl::Now() >= deadline) return absl::DeadlineExceededError("out of time before connecting");
  Request request(http::verb::post, url.path.empty() ? "/" : url.path, 11);
  request.set(http::field::host, url.host);
  request.set(http::field::user_agent, absl::StrCat("mtmc/", std::string(config::Version())));
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "close");
  for (const auto& [name, value] : headers) request.set(name, value);
  request.body() = std::move(body);
  request.prepare_payload();
  try {
    return Exchange(limits, deadline).Run(url, request);
  } catch (const std::exception& error) {
    // Asio throws where the system has no descriptors or memory left.
    return absl::UnavailableError(absl::StrCat("cannot open a connection: ", error.what()));
  }
}

}  // namespace mtmc::gateway
