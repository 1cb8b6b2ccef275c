// SPDX-License-Identifier: Apache-2.0
#include "common/http/connection.h"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/detect_ssl.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <future>
#include <sstream>
#include <string_view>
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

// Ends an answer that came in parts.
constexpr std::string_view kLastChunk = "0\r\n\r\n";

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

Connection::Connection(asio::ip::tcp::socket socket, std::uint64_t max_body_bytes,
                       std::shared_ptr<asio::ssl::context> tls)
    : context_(std::move(tls)),
      stream_(std::move(socket)),
      buffer_(kMaxHeadBytes + max_body_bytes) {
  parser_.header_limit(kMaxHeadBytes);
  parser_.body_limit(max_body_bytes);
}

void Connection::Read(Done done) {
  stream_.expires_after(kReadLimit);
  context_ ? Detect(std::move(done)) : ReadRequest(std::move(done));
}

void Connection::Detect(Done done) {
  beast::async_detect_ssl(
      stream_, buffer_,
      [self = shared_from_this(), done = std::move(done)](error_code error, bool is_tls) mutable {
        if (error) {
          self->Close();
          return done(std::nullopt);
        }
        is_tls ? self->ShakeHands(std::move(done)) : self->ReadRequest(std::move(done));
      });
}

void Connection::ShakeHands(Done done) {
  tls_.emplace(stream_, *context_);
  tls_->async_handshake(asio::ssl::stream_base::server, buffer_.data(),
                        [self = shared_from_this(), done = std::move(done)](
                            error_code error, std::size_t used) mutable {
                          if (error) {
                            self->Close();
                            return done(std::nullopt);
                          }
                          self->buffer_.consume(used);
                          self->ReadRequest(std::move(done));
                        });
}

void Connection::ReadRequest(Done done) {
  auto read = [self = shared_from_this(), done = std::move(done)](error_code error, std::size_t) {
    if (!error) {
      const auto& message = self->parser_.get();
      self->is_chunked_ = message.version() >= 11;
      self->is_head_ = message.method() == beast::http::verb::head;
      Request request = ToRequest(message);
      request.is_encrypted = self->tls_.has_value();
      return done(std::move(request));
    }
    if (error == beast::http::error::body_limit) {
      self->Reply({.status = 413, .body = "the request is too large\n", .headers = {}});
    } else if (error == beast::http::error::header_limit) {
      self->Reply({.status = 431, .body = "the head of the request is too large\n", .headers = {}});
    } else {
      self->Close();
    }
    done(std::nullopt);
  };
  On([&](auto& stream) { beast::http::async_read(stream, buffer_, parser_, std::move(read)); });
}

void Connection::WatchForEnd() {
  auto received = [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->NoteClosed();
    self->WatchForEnd();
  };
  if (tls_) {
    // Nobody has to say anything: the deadline of a write is not the reader's.
    stream_.expires_never();
    return tls_->async_read_some(asio::buffer(&surplus_, 1), std::move(received));
  }
  // On the socket itself, which has no deadline.
  stream_.socket().async_receive(asio::buffer(&surplus_, 1), std::move(received));
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
  auto end = [self = shared_from_this()](error_code) {
    error_code ignored;
    self->stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    self->NoteClosed();
  };
  On([&](auto& stream) {
    beast::http::async_write(stream, reply_,
                             [self = shared_from_this(), end](error_code error, std::size_t) {
                               // Else the client cannot tell an end from a cut.
                               if (self->tls_ && !error) return self->tls_->async_shutdown(end);
                               end(error);
                             });
  });
}

void Connection::Finish() {
  if (!is_in_parts_ || !is_chunked_ || is_head_) return Close();
  stream_.expires_after(kWriteLimit);
  On([&](auto& stream) {
    asio::async_write(stream, asio::buffer(kLastChunk),
                      [self = shared_from_this()](error_code, std::size_t) { self->Close(); });
  });
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
    On([&](auto& stream) {
      asio::async_write(stream, asio::buffer(bytes), [this, &done](error_code error, std::size_t) {
        // Silence between two parts has no limit.
        stream_.expires_never();
        done.set_value(error);
      });
    });
  });
  return done.get_future().get() ? Gone() : absl::OkStatus();
}

}  // namespace mtmc::http
