// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mtmc::http {

struct Request {
  // Upper case, such as `GET`.
  std::string method;
  // Path and query as sent, such as `/v1/workers?page_size=2`.
  std::string target;
  // By lower-case name.
  std::map<std::string, std::string> headers;
  std::string body;
  // It came by HTTPS.
  bool is_encrypted = false;
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Further headers.
  std::vector<std::pair<std::string, std::string>> headers;
};

// The answer to one request. Written by one thread at a time.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // The whole answer. Once, and not with Begin.
  virtual void Send(Response response) = 0;

  // Begins an answer that comes in parts; the body of `head` is its first one.
  // CANCELLED, here and below, when the client has gone or the server ends.
  virtual absl::Status Begin(Response head) = 0;

  // The next part. Waits until the network has taken it, ten seconds at most.
  virtual absl::Status Write(const std::string& part) = 0;

  // `callback` is called once, from any thread, when the client goes or the server
  // ends, at once if that has happened; never after the function that serves returned, or
  // after another one, or null, was given.
  virtual void OnClose(std::function<void()> callback) = 0;
};

// Certificates of a server, all PEM. A value.
struct TlsFiles {
  // Certificate chain and private key.
  std::string cert_file;
  std::string key_file;
  // Authorities of the certificates that clients must show; empty asks for none.
  std::string client_ca_file;
};

// HTTP/1.1, one request a connection, for scrapes, probes and a REST client. With
// certificates the same port takes HTTPS, too: what may not come in clear is for who answers
// to refuse.
//
// A service: immovable; serves from Create() to destruction, which waits for the
// functions that serve.
class Server {
 public:
  struct Options {
    // host:port; port 0 takes a free one.
    std::string address = "127.0.0.1:0";
    // Answers at once, on the server's one thread; nothing leaves the request to
    // `serve`. Must not block.
    std::function<std::optional<Response>(const Request&)> answer;
    // Answers the other requests, each on a thread of its own. Unset answers 404.
    std::function<void(const Request&, ResponseWriter&)> serve;
    // Larger requests are refused with 413.
    std::uint64_t max_body_bytes = std::uint64_t{2} << 20;
    // Requests that `serve` works on at a time; above it they get 503.
    int max_serving = 64;
    // Read anew within a second of a change.
    std::optional<TlsFiles> tls;
  };

  // UNAVAILABLE with reason PORT_TAKEN, INVALID_ARGUMENT with reason ADDRESS_INVALID or
  // TLS_FILE_INVALID.
  static absl::StatusOr<std::unique_ptr<Server>> Create(Options options);

  ~Server();

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;

 private:
  class Impl;

  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace mtmc::http
