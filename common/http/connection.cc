// SPDX-License-Identifier: Apache-2.0
#include "common/http/connection.h"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <future>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace mtmc::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

constexpr auto kReadLimit = std::chrono::seconds(5);
constexpr auto kWriteLimit = std::chrono::seconds(10);
constexpr std::size_t kMaxHeadBytes = 16 << 10;

absl::Status Gone() { return absl::CancelledError("the client has gone"); }

Request ToRequest(const beast::http::request<beast::http::string_body>& message) {
  Request request{.method = std::string(message.method_string()),
                  .target = std::string(message.target()),
                  .headers = {},
                  .body = message.body()};
  for (const auto& field : message) {
    request.headers.emplace(absl::AsciiStrToLower(std::string(field.name_string())),
                            std::string(field.value()));
  }
  return request;
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, std::uint64_t max_body_bytes)
    : stream_(std::move(socket)), buffer_(kMaxHeadBytes + max_body_bytes) {
  parser_.header_limit(kMaxHeadBytes);
  parser_.body_limit(max_body_bytes);
}

void Connection::Read(std::function<void(std::optional<Request>)> done) {
  stream_.expires_after(kReadLimit);
  beast::http::async_read(
      stream_, buffer_, parser_,
      [self = shared_from_this(), done = std::move(done)](error_code error, std::size_t) {
        if (!error) {
          const auto& message = self->parser_.get();
          self->is_chunked_ = message.version() >= 11;
          self->is_head_ = message.method() == beast::http::verb::head;
          return done(ToRequest(message));
        }
        if (error == beast::http::error::body_limit) {
          self->Reply({.status = 413, .body = "the request is too large\n", .headers = {}});
        } else if (error == beast::http::error::header_limit) {
          self->Reply(
              {.status = 431, .body = "the head of the request is too large\n", .headers = {}});
        } else {
          self->Close();
        }
        done(std::nullopt);
      });
}

void Connection::WatchForEnd() {
  // On the socket itself, which has no deadline.
  stream_.socket().async_receive(asio::buffer(&surplus_, 1),
                                 [self = shared_from_this()](error_code error, std::size_t) {
                                   if (error) return self->NoteClosed();
                                   self->WatchForEnd();
                                 });
}

void Connection::Close() {
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
  NoteClosed();
}

void Connection::NoteClosed() {
  std::function<void()> callback;
  {
    absl::MutexLock lock(&mu_);
    is_closed_ = true;
    callback = std::exchange(on_close_, nullptr);
    // Called under the lock, so that Release() waits for it.
    if (callback) callback();
  }
}

void Connection::OnClose(std::function<void()> callback) {
  absl::MutexLock lock(&mu_);
  if (!is_closed_ || !callback) {
    on_close_ = std::move(callback);
  } else {
    callback();
  }
}

void Connection::Release() {
  absl::MutexLock lock(&mu_);
  on_close_ = nullptr;
}

Connection::Message Connection::ToMessage(Response response, bool is_whole) const {
  Message message(static_cast<beast::http::status>(response.status), 11);
  message.set(beast::http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(false);
  if (is_whole) {
    message.body() = std::move(response.body);
    message.prepare_payload();
    // HEAD is the same answer without its body, but with its length.
    if (is_head_) message.body().clear();
  } else if (is_chunked_) {
    message.chunked(true);
  }
  return message;
}

void Connection::Reply(Response response) {
  reply_ = ToMessage(std::move(response), /*is_whole=*/true);
  stream_.expires_after(kWriteLimit);
  beast::http::async_write(stream_, reply_, [self = shared_from_this()](error_code, std::size_t) {
    error_code ignored;
    self->stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    self->NoteClosed();
  });
}

void Connection::Finish() {
  if (!is_in_parts_ || !is_chunked_ || is_head_) return Close();
  static constexpr std::string_view kEnd = "0\r\n\r\n";
  stream_.expires_after(kWriteLimit);
  asio::async_write(stream_, asio::buffer(kEnd),
                    [self = shared_from_this()](error_code, std::size_t) { self->Close(); });
}

void Connection::Send(Response response) {
  std::ostringstream text;
  text << ToMessage(std::move(response), /*is_whole=*/true);
  Put(text.str()).IgnoreError();
}

absl::Status Connection::Begin(Response head) {
  is_in_parts_ = true;
  const std::string first = std::move(head.body);
  head.body.clear();
  std::ostringstream text;
  text << ToMessage(std::move(head), /*is_whole=*/false).base();
  absl::Status status = Put(text.str());
  if (status.ok() && !first.empty()) status = Write(first);
  return status;
}

absl::Status Connection::Write(const std::string& part) {
  // A part of no bytes would be the end of the answer.
  if (part.empty() || is_head_) return absl::OkStatus();
  return Put(is_chunked_ ? absl::StrFormat("%x\r\n%s\r\n", part.size(), part) : part);
}

absl::Status Connection::Put(std::string bytes) {
  {
    absl::MutexLock lock(&mu_);
    if (is_closed_) return Gone();
  }
  std::promise<error_code> done;
  asio::post(stream_.get_executor(), [this, &bytes, &done] {
    stream_.expires_after(kWriteLimit);
    asio::async_write(stream_, asio::buffer(bytes), [this, &done](error_code error, std::size_t) {
      // Silence between two parts has no limit.
      stream_.expires_never();
      done.set_value(error);
    });
  });
  return done.get_future().get() ? Gone() : absl::OkStatus();
}

}  // namespace mtmc::http
