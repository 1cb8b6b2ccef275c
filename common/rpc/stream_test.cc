// SPDX-License-Identifier: Apache-2.0

// The streams of common/rpc, client against server.

#include <grpcpp/channel.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/client_stream.h"
#include "common/rpc/server.h"
#include "common/rpc/test_service.h"
#include "common/testing/status_matchers.h"

namespace mtmc::rpc {
namespace {

using testing::IsOk;
using testing::StatusIs;
using Download = ClientStream<v1::DownloadArtifactResponse>;
using Upload = ClientUpload<v1::UploadArtifactRequest, v1::UploadArtifactResponse>;

absl::Time Soon() { return absl::Now() + absl::Seconds(10); }

v1::DownloadArtifactResponse Chunk(const std::string& text) {
  v1::DownloadArtifactResponse response;
  response.set_chunk(text);
  return response;
}

// A server, and a client of it.
struct Connection {
  explicit Connection(TestService& service) {
    auto created = RpcServer::Create({.services = {&service}});
    REQUIRE_THAT(created.status(), IsOk());
    server = *std::move(created);
    stub = v1::ArtifactService::NewStub(MakeChannel(server->address()));
  }

  Download StartDownload(Download::Options options = {}) {
    const v1::DownloadArtifactRequest request;
    return Download::Start(
        [&](grpc::ClientContext* context, auto* reactor) {
          stub->async()->DownloadArtifact(context, &request, reactor);
        },
        options);
  }

  Upload StartUpload() {
    return Upload::Start(
        [&](grpc::ClientContext* context, auto* response, auto* reactor) {
          stub->async()->UploadArtifact(context, response, reactor);
        },
        Soon());
  }

  std::unique_ptr<RpcServer> server;
  std::unique_ptr<v1::ArtifactService::Stub> stub;
};

v1::UploadArtifactRequest Part(const std::string& text) {
  v1::UploadArtifactRequest request;
  request.set_chunk(text);
  return request;
}

TEST_CASE("A stream delivers all responses in order", "[rpc]") {
  TestService service;
  service.download = [](const auto& stream) {
    absl::Status status;
    for (int i = 0; i < 100; ++i) status.Update(stream->Write(Chunk(std::to_string(i))));
    stream->Close(status);
  };
  Connection connection(service);

  Download download = connection.StartDownload({.max_queued = 2});

  for (int i = 0; i < 100; ++i) {
    const auto response = download.Next(Soon());
    REQUIRE_THAT(response.status(), IsOk());
    REQUIRE(response->has_value());
    REQUIRE((*response)->chunk() == std::to_string(i));
  }
  CHECK_FALSE(download.Next(Soon()).value().has_value());
}

TEST_CASE("A stream ends with the status it is closed with", "[rpc]") {
  TestService service;
  service.download = [](const auto& stream) {
    stream->Close(MakeError(absl::StatusCode::kNotFound, "ARTIFACT_NOT_FOUND", "no such blob"));
  };
  Connection connection(service);

  const auto response = connection.StartDownload().Next(Soon());

  CHECK(ErrorReason(response.status()) == "ARTIFACT_NOT_FOUND");
}

TEST_CASE("A producer learns that the client has gone", "[rpc]") {
  TestService service;
  std::shared_ptr<TestService::DownloadStream> stream;
  absl::Notification is_done;
  service.download_options = {.on_done = [&] { is_done.Notify(); }};
  service.download = [&](const auto& given) {
    stream = given;
    stream->Write(Chunk("first")).IgnoreError();  // The client sees whether it came.
  };
  Connection connection(service);
  {
    Download download = connection.StartDownload();
    REQUIRE_THAT(download.Next(Soon()).status(), IsOk());
  }

  REQUIRE(is_done.WaitForNotificationWithTimeout(absl::Seconds(10)));

  CHECK_THAT(stream->Write(Chunk("late")), StatusIs(absl::StatusCode::kCancelled));
}

TEST_CASE("A producer is told when the client reads too slowly", "[rpc]") {
  TestService service;
  service.download_options = {.max_queued = 1};
  absl::Status status;
  service.download = [&](const auto& stream) {
    // Nothing is written before the method returns, so the second is too much.
    stream->Write(Chunk("first")).IgnoreError();  // The client sees whether it came.
    status = stream->Write(Chunk("second"));
    stream->Close(absl::OkStatus());
  };
  Connection connection(service);

  Download download = connection.StartDownload();

  CHECK_THAT(download.Next(Soon()).status(), IsOk());
  CHECK_FALSE(download.Next(Soon()).value().has_value());
  CHECK_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_CASE("Next stops waiting at its deadline", "[rpc]") {
  TestService service;
  std::shared_ptr<TestService::DownloadStream> stream;
  service.download = [&](const auto& given) { stream = given; };
  Connection connection(service);
  Download download = connection.StartDownload();

  CHECK_THAT(download.Next(absl::Now() + absl::Milliseconds(10)).status(),
             StatusIs(absl::StatusCode::kDeadlineExceeded));

  download.Cancel();
  CHECK_THAT(download.Next(Soon()).status(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_CASE("An upload is answered after its last part", "[rpc]") {
  TestService service;
  Connection connection(service);
  Upload upload = connection.StartUpload();
  for (const char* text : {"a", "b", "c"}) CHECK(upload.Write(Part(text)));

  const auto response = upload.Finish();

  REQUIRE_THAT(response.status(), IsOk());
  CHECK(response->digest().sha256() == "abc");
}

TEST_CASE("An upload that is refused ends early with the reason", "[rpc]") {
  TestService service;
  Connection connection(service);
  Upload upload = connection.StartUpload();
  while (upload.Write(Part("bad"))) std::this_thread::yield();

  CHECK_THAT(upload.Finish().status(), StatusIs(absl::StatusCode::kInvalidArgument, "a bad chunk"));
}

TEST_CASE("An upload given up leaves the server able to serve", "[rpc]") {
  TestService service;
  Connection connection(service);
  {
    Upload upload = connection.StartUpload();
    CHECK(upload.Write(Part("a")));
  }

  Upload next = connection.StartUpload();
  CHECK(next.Write(Part("b")));

  CHECK(next.Finish().value().digest().sha256() == "b");
}

}  // namespace
}  // namespace mtmc::rpc
