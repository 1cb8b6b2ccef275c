// SPDX-License-Identifier: Apache-2.0
//
// HTTPS, by a client of OpenSSL's.
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/http/http_server.h"
#include "common/rpc/error.h"
#include "common/testing/certificates.h"
#include "common/testing/socket_client.h"
#include "common/testing/status_matchers.h"

namespace mtmc::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using testing::CertificatePair;
using testing::IsOk;
using testing::TestAuthority;

// A folder with the files of a server.
struct Files {
  base::TempDir folder = *base::TempDir::Create("tls");

  std::string Path(const std::string& name) const { return (folder.path() / name).string(); }

  void Write(const std::string& name, const std::string& text) const {
    REQUIRE_THAT(base::WriteFileAtomically(Path(name), text), IsOk());
  }

  // Of the certificate `pair`.
  TlsFiles Install(const CertificatePair& pair) const {
    Write("key.pem", pair.key);
    Write("cert.pem", pair.certificate);
    return {.cert_file = Path("cert.pem"), .key_file = Path("key.pem"), .client_ca_file = ""};
  }
};

// A client that trusts `authority`; `own`, if there is one, is its certificate.
class Client {
 public:
  explicit Client(const TestAuthority& authority, const CertificatePair* own = nullptr) {
    context_.set_verify_mode(asio::ssl::verify_peer);
    context_.add_certificate_authority(asio::buffer(authority.certificate()));
    if (own == nullptr) return;
    context_.use_certificate_chain(asio::buffer(own->certificate));
    context_.use_private_key(asio::buffer(own->key), asio::ssl::context::pem);
  }

  // Connects and sends; an error of the handshake, which a server's refusal follows.
  error_code Send(int port, const std::string& request) {
    stream_ = std::make_unique<asio::ssl::stream<asio::ip::tcp::socket>>(io_, context_);
    stream_->lowest_layer().connect(
        {asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)});
    error_code error;
    stream_->handshake(asio::ssl::stream_base::client, error);
    if (!error) asio::write(*stream_, asio::buffer(request), error);
    return error;
  }

  // What comes until the end; empty after an error.
  std::string Read() {
    std::string text;
    error_code error;
    asio::read(*stream_, asio::dynamic_buffer(text), error);
    return error == asio::error::eof || error == asio::ssl::error::stream_truncated ? text : "";
  }

  std::string Get(int port) {
    return Send(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") ? "" : Read();
  }

  void Disconnect() { stream_.reset(); }

 private:
  asio::io_context io_;
  asio::ssl::context context_{asio::ssl::context::tls_client};
  std::unique_ptr<asio::ssl::stream<asio::ip::tcp::socket>> stream_;
};

std::unique_ptr<Server> Serve(Server::Options options) {
  auto server = Server::Create(std::move(options));
  REQUIRE_THAT(server.status(), IsOk());
  return *std::move(server);
}

Response WhetherEncrypted(const Request& request) {
  return {.body = request.is_encrypted ? "encrypted" : "clear", .headers = {}};
}

TEST_CASE("One port takes HTTP and HTTPS, and tells them apart", "[http]") {
  const TestAuthority authority("ca");
  const Files files;
  const auto server = Serve({.answer = WhetherEncrypted,
                             .serve = nullptr,
                             .tls = files.Install(authority.Issue("server"))});

  const std::string encrypted = Client(authority).Get(server->port());

  CHECK_THAT(encrypted, StartsWith("HTTP/1.1 200 OK") && EndsWith("\r\n\r\nencrypted"));
  CHECK_THAT(testing::HttpGet(server->port(), "/"), EndsWith("\r\n\r\nclear"));
  CHECK(Client(TestAuthority("another")).Get(server->port()).empty());
}

TEST_CASE("An answer in parts goes through TLS, until the client goes", "[http]") {
  const TestAuthority authority("ca");
  const Files files;
  absl::Notification has_begun, has_closed;
  const auto server =
      Serve({.answer = nullptr,
             .serve =
                 [&](const Request& request, ResponseWriter& writer) {
                   CHECK_THAT(writer.Begin({.body = "one,", .headers = {}}), IsOk());
                   CHECK_THAT(writer.Write("two"), IsOk());
                   if (request.target == "/") return;
                   writer.OnClose([&has_closed] { has_closed.Notify(); });
                   has_begun.Notify();
                   has_closed.WaitForNotification();
                 },
             .tls = files.Install(authority.Issue("server"))});

  CHECK_THAT(Client(authority).Get(server->port()), EndsWith("4\r\none,\r\n3\r\ntwo\r\n0\r\n\r\n"));
  Client leaving(authority);
  REQUIRE_FALSE(leaving.Send(server->port(), "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n"));
  has_begun.WaitForNotification();
  leaving.Disconnect();

  CHECK(has_closed.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST_CASE("A large body comes through TLS whole", "[http]") {
  const TestAuthority authority("ca");
  const Files files;
  const auto server = Serve(
      {.answer = nullptr,
       .serve = [](const Request& request,
                   ResponseWriter& writer) { writer.Send({.body = request.body, .headers = {}}); },
       .tls = files.Install(authority.Issue("server"))});
  const std::string body(1 << 20, 'x');
  Client client(authority);

  REQUIRE_FALSE(client.Send(server->port(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                                                std::to_string(body.size()) + "\r\n\r\n" + body));

  CHECK_THAT(client.Read(), EndsWith("\r\n\r\n" + body));
}

TEST_CASE("A certificate that is replaced is shown without a restart", "[http]") {
  const TestAuthority old_authority("old"), new_authority("new");
  const Files files;
  const auto server = Serve({.answer = WhetherEncrypted,
                             .serve = nullptr,
                             .tls = files.Install(old_authority.Issue("server"))});
  REQUIRE_FALSE(Client(old_authority).Get(server->port()).empty());

  // A moment in which they do not belong together: the old ones hold, also when they were
  // looked at.
  files.Write("cert.pem", new_authority.Issue("server").certificate);
  const absl::Time looked = absl::Now() + absl::Milliseconds(1500);
  bool is_held = true;
  while (is_held && absl::Now() < looked) {
    is_held = !Client(old_authority).Get(server->port()).empty();
  }
  CHECK(is_held);
  files.Install(new_authority.Issue("server"));

  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  bool is_new = false;
  while (!is_new && absl::Now() < deadline) {
    is_new = !Client(new_authority).Get(server->port()).empty();
  }
  CHECK(is_new);
}

TEST_CASE("Clients show certificates where authorities of theirs are named", "[http]") {
  const TestAuthority authority("ca"), clients("clients");
  const Files files;
  TlsFiles tls = files.Install(authority.Issue("server"));
  files.Write("clients.pem", clients.certificate());
  tls.client_ca_file = files.Path("clients.pem");
  const auto server = Serve({.answer = WhetherEncrypted, .serve = nullptr, .tls = tls});
  const CertificatePair known = clients.Issue("known"), foreign = authority.Issue("foreign");

  CHECK_THAT(Client(authority, &known).Get(server->port()), EndsWith("encrypted"));
  CHECK(Client(authority).Get(server->port()).empty());
  CHECK(Client(authority, &foreign).Get(server->port()).empty());
}

TEST_CASE("Whoever says nothing, or nonsense, costs the server nothing else", "[http]") {
  const TestAuthority authority("ca");
  const Files files;
  const auto server = Serve({.answer = WhetherEncrypted,
                             .serve = nullptr,
                             .tls = files.Install(authority.Issue("server"))});
  const auto silent = testing::Connect(server->port());
  // The beginning of a hello that never comes.
  testing::Exchange(server->port(),
                    std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));

  CHECK_THAT(Client(authority).Get(server->port()), EndsWith("encrypted"));
}

TEST_CASE("Files that are no certificates are refused by name", "[http]") {
  const TestAuthority authority("ca");
  const Files files;
  TlsFiles tls = files.Install(authority.Issue("server"));
  files.Write("key.pem", authority.Issue("another").key);

  CHECK(rpc::ErrorReason(
            Server::Create({.answer = nullptr, .serve = nullptr, .tls = tls}).status()) ==
        "TLS_FILE_INVALID");
  tls.cert_file = files.Path("absent.pem");
  CHECK_THAT(Server::Create({.answer = nullptr, .serve = nullptr, .tls = tls}).status(),
             testing::StatusIs(absl::StatusCode::kInvalidArgument, "absent.pem"));
}

}  // namespace
}  // namespace mtmc::http
