// SPDX-License-Identifier: Apache-2.0
//
// One connection of the HTTP server. Private to this folder.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/http/http_server.h"

namespace mtmc::http {

// Reads one request, encrypted or not, and lets any thread write its answer. Operations on the
// socket run on the server's thread; a writing thread waits for them.
class Connection final : public ResponseWriter, public std::enable_shared_from_this<Connection> {
 public:
  // With `tls` a client may begin with TLS's hello.
  Connection(boost::asio::ip::tcp::socket socket, std::uint64_t max_body_bytes,
             std::shared_ptr<boost::asio::ssl::context> tls);

  // Reads a request within five seconds, then calls `done`: without one if what came is
  // none, which is answered already where it can be.
  void Read(std::function<void(std::optional<Request>)> done);

  // From here on a client that goes away is noticed. On the server's thread.
  void WatchForEnd();

  // Closes the socket; calls OnClose's callback. On the server's thread.
  void Close();

  // Ends an answer that came in parts, and the connection. On the server's thread, after
  // the function that serves has returned.
  void Finish();

  // No callback is called after it: the function that serves has returned.
  void Release() ABSL_LOCKS_EXCLUDED(mu_);

  // On the server's thread: writes and closes without a thread that waits.
  void Reply(Response response);

  void Send(Response response) override;
  absl::Status Begin(Response head) override;
  absl::Status Write(const std::string& part) override;
  void OnClose(std::function<void()> callback) override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Message = boost::beast::http::response<boost::beast::http::string_body>;

  using Done = std::function<void(std::optional<Request>)>;

  // Calls `run` with what bytes go through: the socket, or TLS on it.
  template <typename Run>
  void On(Run run) {
    tls_ ? run(*tls_) : run(stream_);
  }

  // The parts of Read.
  void Detect(Done done);
  void ShakeHands(Done done);
  void ReadRequest(Done done);

  Message ToMessage(Response response, bool is_whole) const;
  // Writes bytes from another thread, and waits.
  absl::Status Put(std::string bytes);
  void NoteClosed() ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<boost::asio::ssl::context> context_;
  boost::beast::tcp_stream stream_;
  std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
  Message reply_;
  // Where bytes go that a client sends after its request.
  char surplus_ = 0;
  // HTTP/1.1: an answer in parts has them framed.
  bool is_chunked_ = false;
  bool is_head_ = false;
  bool is_in_parts_ = false;

  absl::Mutex mu_;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> on_close_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::http
