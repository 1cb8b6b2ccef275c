// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/security.h"

#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/rpc/test_service.h"
#include "common/testing/certificates.h"
#include "common/testing/status_matchers.h"

namespace mtmc::rpc {
namespace {

using testing::IsOk;
using testing::TestAuthority;

// Longer than any handshake takes on a loaded host. Handshakes that must fail are told
// by the server's or the client's refusal, not by this.
constexpr absl::Duration kPatience = absl::Seconds(60);

// Files of one test.
class Files {
 public:
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = folder_.path() / name;
    REQUIRE_THAT(base::WriteFileAtomically(path, text), IsOk());
    return path;
  }

 private:
  const base::TempDir folder_ = *base::TempDir::Create();
};

ServerSecurity WithCertificate(const Files& files, const TestAuthority& authority) {
  const auto pair = authority.Issue("server.example");
  return {.cert_file = files.Write("server.pem", pair.certificate),
          .key_file = files.Write("server.key", pair.key)};
}

// What one call of a new channel comes to.
absl::Status CallOnce(const RpcServer& server, const ChannelSecurity& security) {
  const auto stub = v1::ArtifactService::NewStub(
      MakeChannel(server.address(), {.retries_unavailable = false, .security = security}));
  grpc::ClientContext context;
  SetDeadline(context, absl::Now() + kPatience);
  v1::FindMissingArtifactsResponse response;
  return FromGrpc(stub->FindMissingArtifacts(&context, {}, &response));
}

std::unique_ptr<RpcServer> Serve(TestService& service, const ServerSecurity& security) {
  auto server = RpcServer::Create({.services = {&service}, .security = security});
  REQUIRE_THAT(server.status(), IsOk());
  return *std::move(server);
}

TEST_CASE("A server with TLS serves those who trust its authority, and no others", "[security]") {
  const Files files;
  const TestAuthority authority("ours");
  const TestAuthority other("another");
  TestService service;
  const auto server = Serve(service, WithCertificate(files, authority));

  CHECK_THAT(CallOnce(*server, {.ca_file = files.Write("ca.pem", authority.certificate())}),
             IsOk());
  CHECK(absl::IsUnavailable(
      CallOnce(*server, {.ca_file = files.Write("other.pem", other.certificate())})));
  CHECK(absl::IsUnavailable(CallOnce(*server, {})));
}

TEST_CASE("A server that asks for certificates serves those of its authority only", "[security]") {
  const Files files;
  const TestAuthority authority("ours");
  const TestAuthority clients("clients");
  ServerSecurity security = WithCertificate(files, authority);
  security.client_ca_file = files.Write("clients.pem", clients.certificate());
  TestService service;
  const auto server = Serve(service, security);
  const std::string ca = files.Write("ca.pem", authority.certificate());
  const auto known = clients.Issue("alice");
  const auto unknown = authority.Issue("mallory");

  CHECK_THAT(CallOnce(*server, {.ca_file = ca,
                                .cert_file = files.Write("alice.pem", known.certificate),
                                .key_file = files.Write("alice.key", known.key)}),
             IsOk());
  CHECK(absl::IsUnavailable(CallOnce(*server, {.ca_file = ca})));
  CHECK(absl::IsUnavailable(
      CallOnce(*server, {.ca_file = ca,
                         .cert_file = files.Write("mallory.pem", unknown.certificate),
                         .key_file = files.Write("mallory.key", unknown.key)})));
}

TEST_CASE("A certificate that is replaced is used without a restart", "[security]") {
  const Files files;
  const TestAuthority before("before");
  const TestAuthority after("after");
  TestService service;
  const auto server = Serve(service, WithCertificate(files, before));
  const ChannelSecurity trusting_after{.ca_file = files.Write("after.pem", after.certificate())};
  REQUIRE(absl::IsUnavailable(CallOnce(*server, trusting_after)));

  WithCertificate(files, after);

  // gRPC looks each second; each call is a handshake, and the loop ends with the first.
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Status status = absl::UnknownError("not called");
  while (!status.ok() && absl::Now() < deadline) status = CallOnce(*server, trusting_after);
  CHECK_THAT(status, IsOk());
}

TEST_CASE("What others reach has TLS, or somebody has said that it need not", "[security]") {
  TestService service;
  const auto refused = RpcServer::Create({.address = "0.0.0.0:0", .services = {&service}});
  CHECK(ErrorReason(refused.status()) == "LISTENER_INSECURE");

  CHECK_THAT(
      RpcServer::Create(
          {.address = "0.0.0.0:0", .services = {&service}, .security = {.is_insecure = true}})
          .status(),
      IsOk());
}

TEST_CASE("Loopback is told from what others reach", "[security]") {
  const auto [address, expected] = GENERATE(table<const char*, bool>({
      {"127.0.0.1:1", true},
      {"127.9.9.9:1", true},
      {"localhost:1", true},
      {"[::1]:1", true},
      {"unix:/tmp/socket", true},
      {"ipv4:127.0.0.1:1,127.0.0.2:1", true},
      {"ipv4:127.0.0.1:1,10.0.0.1:1", false},
      {"0.0.0.0:1", false},
      {"[::]:1", false},
      {"127.example.com:1", false},
      {"localhost.example.com:1", false},
      {"dns:///coordinator.example:1", false},
      {":1", false},
      {"", false},
  }));
  CAPTURE(address);
  CHECK(IsLoopback(address) == expected);
}

TEST_CASE("Files that cannot be used are refused with what is wrong", "[security]") {
  const Files files;
  const TestAuthority authority("ours");
  const auto pair = authority.Issue("one");
  const std::string cert = files.Write("one.pem", pair.certificate);
  const std::string key = files.Write("one.key", pair.key);
  const std::string text = files.Write("text", "text\n");
  const std::string other_key = files.Write("two.key", authority.Issue("two").key);
  const auto reason = [](const ServerSecurity& security) {
    return ErrorReason(Check(security, "127.0.0.1:0"));
  };

  CHECK(reason({.cert_file = cert, .key_file = key}).empty());
  CHECK(reason({.cert_file = cert}) == "TLS_INCOMPLETE");
  CHECK(reason({.client_ca_file = cert}) == "TLS_INCOMPLETE");
  CHECK(reason({.cert_file = text, .key_file = key}) == "TLS_FILE_INVALID");
  CHECK(reason({.cert_file = cert, .key_file = text}) == "TLS_FILE_INVALID");
  CHECK(reason({.cert_file = cert, .key_file = other_key}) == "TLS_FILE_INVALID");
  CHECK(reason({.cert_file = cert, .key_file = key, .client_ca_file = text}) == "TLS_FILE_INVALID");
  CHECK(reason({.cert_file = cert + ".not", .key_file = key}) == "TLS_FILE_INVALID");
  CHECK(ErrorReason(Check(ChannelSecurity{.ca_file = text}, "a:1")) == "TLS_FILE_INVALID");
}

TEST_CASE("A token leaves this host through TLS only", "[security]") {
  const Files files;
  const TestAuthority authority("ours");
  const std::string token = files.Write("token", "mtmc_1\n");
  const std::string ca = files.Write("ca.pem", authority.certificate());
  const auto reason = [](const ChannelSecurity& security, const char* endpoint) {
    return ErrorReason(Check(security, endpoint));
  };

  CHECK(reason({.token_file = token}, "127.0.0.1:1").empty());
  CHECK(reason({.token_file = token}, "far.example:1") == "TOKEN_IN_CLEAR");
  CHECK(reason({.ca_file = ca, .token_file = token}, "far.example:1").empty());
  CHECK(reason({.token_file = token, .is_insecure = true}, "far.example:1").empty());
  CHECK(reason({.token_file = files.Write("none", "\n")}, "127.0.0.1:1") == "TOKEN_FILE_INVALID");
  CHECK(reason({.token_file = files.Write("two", "a b\n")}, "127.0.0.1:1") == "TOKEN_FILE_INVALID");
}

}  // namespace
}  // namespace mtmc::rpc
