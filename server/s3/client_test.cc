// SPDX-License-Identifier: Apache-2.0
//
// Against a real server, and one that answers what it is told.
#include "server/s3/client.h"

#include <catch2/catch.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "common/rpc/error.h"
#include "common/testing/status_matchers.h"
#include "server/s3/s3_server.h"
#include "server/s3/scripted_server.h"

namespace mtmc::s3 {
namespace {

using testing::IsOk;
using testing::StatusIs;

// Quick to give up, for tests.
Client::Options Impatient(Environment environment) {
  return {.connect_timeout = absl::Milliseconds(500),
          .stall_timeout = absl::Seconds(1),
          .attempt_timeout = absl::Milliseconds(600),
          .total = absl::Seconds(3),
          .first_pause = absl::Milliseconds(5),
          .environment = std::move(environment)};
}

Environment AnyKey() {
  return [](const char* name) -> std::optional<std::string> {
    if (std::string(name) == "AWS_ACCESS_KEY_ID") return "planted-key";
    if (std::string(name) == "AWS_SECRET_ACCESS_KEY") return "planted-secret";
    if (std::string(name) == "AWS_SESSION_TOKEN") return "planted-token";
    return std::nullopt;
  };
}

struct Fixture {
  ScriptedServer server;
  metrics::Registry registry{"test"};
  std::unique_ptr<Client> client = Make();

  std::unique_ptr<Client> Make() {
    auto made = Client::Create({.bucket = "b", .endpoint = server.address(), .region = "here"},
                               Impatient(AnyKey()), registry);
    REQUIRE_THAT(made.status(), IsOk());
    return *std::move(made);
  }

  double retries() { return registry.MakeCounter("mtmc_s3_retries_total", "").value(); }
};

std::string Answer(int status, const std::string& code, const std::string& headers = "") {
  const std::string body = "<Error><Code>" + code + "</Code><Message>so</Message></Error>";
  return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
         "Connection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

const char kFine[] = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfine";

}  // namespace

TEST_CASE("Client asks again when S3 is busy, fails, or breaks off", "[s3]") {
  for (const std::string& first : {Answer(503, "SlowDown"), Answer(500, "InternalError"),
                                   Answer(429, ""), Answer(400, "RequestTimeout"), std::string(),
                                   std::string("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\nfine"),
                                   std::string("no HTTP at all\r\n\r\n")}) {
    INFO(first);
    Fixture fixture;
    fixture.server.Play({first, kFine});

    const auto response = fixture.client->Send({.method = "GET", .key = "k"});

    REQUIRE_THAT(response.status(), IsOk());
    CHECK(response->body == "fine");
    CHECK(fixture.retries() == 1);
  }
}

TEST_CASE("Client takes an error for what it is, and a blob that looks like one", "[s3]") {
  Fixture fixture;
  const std::string error = "<Error><Code>InternalError</Code><Message>so</Message></Error>";
  fixture.server.Play({Answer(200, "InternalError"), kFine});
  CHECK(fixture.client->Send({.method = "GET", .key = "k"})->body == error);
  fixture.server.Play({Answer(200, "InternalError"), kFine});
  // The end of a multipart upload.
  CHECK(fixture.client->Send({.method = "POST", .key = "k"})->body == "fine");
}

TEST_CASE("Client waits as long as S3 tells it", "[s3]") {
  Fixture fixture;
  fixture.server.Play({Answer(503, "SlowDown", "Retry-After: 1\r\n"), kFine});
  const absl::Time start = absl::Now();

  REQUIRE_THAT(fixture.client->Send({.method = "GET", .key = "k"}).status(), IsOk());

  CHECK(absl::Now() - start >= absl::Seconds(1));
}

TEST_CASE("Client says what to do about each refusal", "[s3]") {
  struct Case {
    std::string answer;
    const char* reason;
    const char* part;
  };

  for (const Case& refusal :
       {Case{Answer(403, "AccessDenied"), "S3_REFUSED", "access key"},
        Case{Answer(403, "SignatureDoesNotMatch"), "S3_REFUSED", "secret"},
        Case{Answer(403, "RequestTimeTooSkewed"), "S3_REFUSED", "clock"},
        Case{Answer(400, "ExpiredToken"), "S3_REFUSED", "access key"},
        Case{Answer(404, "NoSuchBucket"), "S3_MISCONFIGURED", "bucket b"},
        Case{Answer(301, "PermanentRedirect"), "S3_MISCONFIGURED", "AWS_REGION"},
        Case{Answer(400, "AuthorizationHeaderMalformed"), "S3_MISCONFIGURED", "AWS_REGION"},
        Case{Answer(507, "StorageFull"), "DISK_FULL", "free space"}}) {
    INFO(refusal.answer);
    Fixture fixture;
    fixture.server.Play({refusal.answer});

    const absl::Status status = fixture.client->Send({.method = "GET", .key = "k"}).status();

    CHECK(rpc::ErrorReason(status) == refusal.reason);
    CHECK(std::string(status.message()).find(refusal.part) != std::string::npos);
    CHECK(fixture.retries() == 0);
  }
}

TEST_CASE("Client gives up on a server that is away, and then asks once only", "[s3]") {
  Fixture fixture;
  fixture.server.Stop();
  const absl::Time start = absl::Now();

  const absl::Status away = fixture.client->Send({.method = "GET", .key = "k"}).status();
  const double tried = fixture.retries();
  const absl::Status again = fixture.client->Send({.method = "GET", .key = "k"}).status();

  CHECK(rpc::ErrorReason(away) == "S3_UNAVAILABLE");
  CHECK_THAT(again, StatusIs(absl::StatusCode::kUnavailable, "try again"));
  CHECK(tried == 5);
  CHECK(fixture.retries() == tried);
  CHECK(absl::Now() - start < absl::Seconds(4));
}

TEST_CASE("Client gives up on a server that does not answer", "[s3]") {
  Fixture fixture;
  fixture.server.Play({ScriptedServer::kSilence});
  const absl::Time start = absl::Now();

  const absl::Status status = fixture.client->Send({.method = "GET", .key = "k"}).status();

  CHECK(rpc::ErrorReason(status) == "S3_UNAVAILABLE");
  CHECK(absl::Now() - start < absl::Seconds(5));
}

TEST_CASE("Client ends what waits when it is interrupted", "[s3]") {
  Fixture fixture;
  fixture.server.Play({ScriptedServer::kSilence});
  auto options = Impatient(AnyKey());
  options.attempt_timeout = absl::Seconds(30);
  options.stall_timeout = absl::Seconds(30);
  const auto client =
      *Client::Create({.bucket = "b", .endpoint = fixture.server.address(), .region = "here"},
                      options, fixture.registry);
  const absl::Time start = absl::Now();
  std::jthread interrupter([&] {
    fixture.server.AwaitRequest();
    client->Interrupt();
  });

  CHECK(rpc::ErrorReason(client->Send({.method = "GET", .key = "k"}).status()) == "S3_UNAVAILABLE");
  CHECK(absl::Now() - start < absl::Seconds(5));
  CHECK(rpc::ErrorReason(client->Send({.method = "GET", .key = "k"}).status()) == "S3_UNAVAILABLE");
}

TEST_CASE("Client takes no more of an answer than it can use", "[s3]") {
  Fixture fixture;
  const std::string large(size_t{20} << 20, 'x');
  fixture.server.Play(
      {"HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(large.size()) + "\r\n\r\n" + large});

  CHECK(rpc::ErrorReason(fixture.client->Send({.method = "GET", .key = "k"}).status()) ==
        "S3_UNAVAILABLE");
}

TEST_CASE("Client signs requests and shows no secret in errors and metrics", "[s3]") {
  Fixture fixture;
  fixture.server.Play({Answer(403, "AccessDenied")});

  const absl::Status status =
      fixture.client
          ->Send({.method = "PUT", .key = "a/b", .query = {{"z", ""}, {"a", "1 /"}}, .body = "x"})
          .status();

  const std::string request = fixture.server.AwaitRequest();
  CHECK(request.find("PUT /b/a/b?a=1%20%2F&z= HTTP/1.1") == 0);
  CHECK(request.find("planted-token") != std::string::npos);
  CHECK(request.find("Authorization: AWS4-HMAC-SHA256 Credential=planted-key/") !=
        std::string::npos);
  CHECK(request.find("here/s3/aws4_request") != std::string::npos);
  CHECK(request.find("planted-secret") == std::string::npos);
  for (const std::string& text : {std::string(status.message()), fixture.registry.Render()}) {
    CHECK(text.find("planted") == std::string::npos);
  }
  CHECK(fixture.registry.Render().find("mtmc_s3_requests_total{code=\"403\",method=\"PUT\"} 1") !=
        std::string::npos);
}

TEST_CASE("Client is understood by a real server", "[s3]") {
  auto server = S3Server::Start();
  if (absl::IsNotFound(server.status())) {
    std::cout << "SKIPPED: " << server.status().message() << std::endl;
    return;
  }
  REQUIRE_THAT(server.status(), IsOk());
  metrics::Registry registry("test");
  const auto client =
      *Client::Create(server->settings(), {.environment = server->environment()}, registry);

  CHECK(client->Send({.method = "PUT", .key = "a/k", .body = "hello"})->status == 200);
  CHECK(client->Send({.method = "GET", .key = "a/k"})->body == "hello");
  CHECK(client->Send({.method = "HEAD", .key = "a/k"})->headers.at("content-length") == "5");
  CHECK(client->Send({.method = "HEAD", .key = "a/none"})->status == 404);
  CHECK(client->Send({.method = "DELETE", .key = "a/k"})->status == 204);
  CHECK(client->Send({.method = "GET", .key = "a/k"})->status == 404);
  // The server finds that the bytes are not those that were signed.
  CHECK_FALSE(
      client->Send({.method = "PUT", .key = "a/k", .body = "hello", .sha256 = std::string(64, '0')})
          .ok());
  CHECK(client->Send({.method = "GET", .key = "a/k"})->status == 404);
}

TEST_CASE("Client is refused by a real server with a wrong secret or key", "[s3]") {
  auto server = S3Server::Start();
  if (absl::IsNotFound(server.status())) {
    std::cout << "SKIPPED: " << server.status().message() << std::endl;
    return;
  }
  REQUIRE_THAT(server.status(), IsOk());
  metrics::Registry registry("test");
  for (const char* wrong : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}) {
    const Environment environment = [&, right = server->environment()](const char* name) {
      return std::string(name) == wrong ? std::optional<std::string>("wrong") : right(name);
    };
    const auto client = *Client::Create(server->settings(), {.environment = environment}, registry);

    const absl::Status status = client->Send({.method = "GET", .key = "k"}).status();

    CHECK(rpc::ErrorReason(status) == "S3_REFUSED");
  }
}

}  // namespace mtmc::s3
