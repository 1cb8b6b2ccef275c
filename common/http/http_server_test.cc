// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_server.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/unique_fd.h"
#include "common/rpc/error.h"
#include "common/testing/socket_client.h"
#include "common/testing/status_matchers.h"

namespace mtmc::http {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using testing::Connect;
using testing::Exchange;
using testing::HttpGet;
using testing::IsOk;
using testing::ReadAll;
using testing::SendAll;

std::unique_ptr<Server> Serve(Server::Options options) {
  auto server = Server::Create(std::move(options));
  REQUIRE_THAT(server.status(), IsOk());
  return *std::move(server);
}

TEST_CASE("A quick answer is given at once", "[http]") {
  const auto server = Serve({.answer = [](const Request& request) {
    return Response{.body = request.method + " " + request.target, .headers = {}};
  }});

  const std::string reply = HttpGet(server->port(), "/a?b=c");

  CHECK_THAT(reply, StartsWith("HTTP/1.1 200 OK"));
  CHECK_THAT(reply, EndsWith("\r\n\r\nGET /a?b=c"));
  CHECK_THAT(Exchange(server->port(), "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n"),
             Contains("Content-Length: 7") && EndsWith("\r\n\r\n"));
}

TEST_CASE("Body and headers reach the function that serves", "[http]") {
  const auto server = Serve({.serve = [](const Request& request, ResponseWriter& writer) {
    writer.Send({.status = 201,
                 .body = request.headers.at("x-name") + ":" + request.body,
                 .headers = {{"X-More", "yes"}}});
  }});

  const std::string reply = Exchange(
      server->port(), "POST / HTTP/1.1\r\nHost: x\r\nX-Name: n\r\nContent-Length: 4\r\n\r\nbody");

  CHECK_THAT(reply, StartsWith("HTTP/1.1 201 Created") && Contains("X-More: yes"));
  CHECK_THAT(reply, EndsWith("n:body"));
}

TEST_CASE("An answer in parts is framed for HTTP/1.1 and bare for HTTP/1.0", "[http]") {
  const auto server = Serve({.serve = [](const Request&, ResponseWriter& writer) {
    CHECK_THAT(writer.Begin({.body = "one,", .headers = {}}), IsOk());
    CHECK_THAT(writer.Write(""), IsOk());
    CHECK_THAT(writer.Write("two"), IsOk());
  }});

  CHECK_THAT(HttpGet(server->port(), "/"), EndsWith("4\r\none,\r\n3\r\ntwo\r\n0\r\n\r\n"));
  CHECK_THAT(Exchange(server->port(), "GET / HTTP/1.0\r\n\r\n"), EndsWith("\r\n\r\none,two"));
}

TEST_CASE("Who serves learns that the client has gone", "[http]") {
  absl::Notification has_begun, has_closed;
  const auto server = Serve({.serve = [&](const Request&, ResponseWriter& writer) {
    writer.Begin({.body = "x", .headers = {}}).IgnoreError();
    writer.OnClose([&has_closed] { has_closed.Notify(); });
    has_begun.Notify();
    has_closed.WaitForNotification();
    CHECK_FALSE(writer.Write("y").ok());
  }});

  {
    const base::UniqueFd socket = Connect(server->port());
    SendAll(socket, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    has_begun.WaitForNotification();
  }

  has_closed.WaitForNotification();
}

TEST_CASE("The end of the server ends what is served", "[http]") {
  absl::Notification has_begun;
  std::atomic<bool> has_ended = false;
  auto server = Serve({.serve = [&](const Request&, ResponseWriter& writer) {
    absl::Notification closed;
    writer.OnClose([&closed] { closed.Notify(); });
    has_begun.Notify();
    closed.WaitForNotification();
    has_ended = true;
  }});
  const base::UniqueFd socket = Connect(server->port());
  SendAll(socket, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  has_begun.WaitForNotification();

  server.reset();

  CHECK(has_ended);
}

TEST_CASE("Too many at a time are told to come again, and quick answers go on", "[http]") {
  absl::Notification go_on, has_begun;
  const auto server = Serve({.answer =
                                 [](const Request& request) {
                                   return request.target == "/quick"
                                              ? std::optional(Response{.body = "q", .headers = {}})
                                              : std::nullopt;
                                 },
                             .serve =
                                 [&](const Request&, ResponseWriter& writer) {
                                   has_begun.Notify();
                                   go_on.WaitForNotification();
                                   writer.Send({.body = "slow", .headers = {}});
                                 },
                             .max_serving = 1});
  const base::UniqueFd first = Connect(server->port());
  SendAll(first, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  has_begun.WaitForNotification();

  CHECK_THAT(HttpGet(server->port(), "/"),
             StartsWith("HTTP/1.1 503") && Contains("Retry-After: 1"));
  CHECK_THAT(HttpGet(server->port(), "/quick"), EndsWith("q"));

  go_on.Notify();
  CHECK_THAT(ReadAll(first), EndsWith("slow"));
}

TEST_CASE("Rubbish and what is too large is refused, and the server goes on", "[http]") {
  const auto server =
      Serve({.answer = [](const Request&) { return Response{.body = "ok", .headers = {}}; },
             .max_body_bytes = 100});

  Exchange(server->port(), "\r\n\r\nno http\r\n\r\n");
  CHECK_THAT(Exchange(server->port(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n"),
             StartsWith("HTTP/1.1 413"));
  CHECK_THAT(Exchange(server->port(), "GET /" + std::string(30'000, 'x') + " HTTP/1.1\r\n\r\n"),
             StartsWith("HTTP/1.1 431"));

  CHECK_THAT(HttpGet(server->port(), "/"), EndsWith("ok"));
}

TEST_CASE("A client that sends nothing holds up nobody", "[http]") {
  const auto server =
      Serve({.answer = [](const Request&) { return Response{.body = "ok", .headers = {}}; }});
  std::vector<base::UniqueFd> idle;
  for (int i = 0; i < 20; ++i) idle.push_back(Connect(server->port()));

  CHECK_THAT(HttpGet(server->port(), "/"), EndsWith("ok"));
}

TEST_CASE("A port in use is PORT_TAKEN, a name is no address", "[http]") {
  const auto first = Serve({});

  const auto second = Server::Create({.address = "127.0.0.1:" + std::to_string(first->port())});

  CHECK(rpc::ErrorReason(second.status()) == "PORT_TAKEN");
  CHECK(rpc::ErrorReason(Server::Create({.address = "host:1"}).status()) == "ADDRESS_INVALID");
  CHECK(rpc::ErrorReason(Server::Create({.address = "127.0.0.1"}).status()) == "ADDRESS_INVALID");
}

}  // namespace
}  // namespace mtmc::http
