// SPDX-License-Identifier: Apache-2.0
#include "common/rest/rest_gateway.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/synchronization/notification.h"
#include "common/http/http_server.h"
#include "common/rpc/error.h"
#include "common/rpc/status.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/artifact.grpc.pb.h"

namespace mtmc::rest {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;
using testing::IsOk;

// Artifacts without a store: what it answers is what was asked.
class Artifacts final : public v1::ArtifactService::Service {
 public:
  grpc::Status FindMissingArtifacts(grpc::ServerContext* context,
                                    const v1::FindMissingArtifactsRequest* request,
                                    v1::FindMissingArtifactsResponse* response) override {
    const auto token = context->client_metadata().find("authorization");
    if (token == context->client_metadata().end() || token->second != "Bearer good") {
      return rpc::ToGrpc(rpc::WithRetryDelay(
          rpc::MakeError(absl::StatusCode::kUnauthenticated, "TOKEN_MISSING", "log in"),
          absl::Milliseconds(1500)));
    }
    *response->mutable_missing() = request->digests();
    return grpc::Status::OK;
  }

  grpc::Status UploadArtifact(grpc::ServerContext*,
                              grpc::ServerReader<v1::UploadArtifactRequest>* reader,
                              v1::UploadArtifactResponse* response) override {
    v1::UploadArtifactRequest part;
    while (reader->Read(&part)) {
      response->mutable_digest()->set_size_bytes(response->digest().size_bytes() +
                                                 static_cast<int64_t>(part.chunk().size()));
    }
    return grpc::Status::OK;
  }

  grpc::Status DownloadArtifact(grpc::ServerContext*, const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::DownloadArtifactResponse>* writer) override {
    v1::DownloadArtifactResponse part;
    part.set_chunk("ab");
    for (int64_t i = 0; i < request->offset(); ++i) writer->Write(part);
    if (request->digest().sha256() == "endless") {
      while (writer->Write(part)) {
      }
      was_cancelled.Notify();
    }
    if (request->digest().sha256() != "broken") return grpc::Status::OK;
    return rpc::ToGrpc(
        rpc::MakeError(absl::StatusCode::kNotFound, "ARTIFACT_NOT_FOUND", "not there"));
  }

  absl::Notification was_cancelled;
};

// Keeps what was written; goes away after some parts if it is told to.
class Recorder final : public http::ResponseWriter {
 public:
  void Send(http::Response response) override { sent = std::move(response); }

  absl::Status Begin(http::Response head) override {
    sent = std::move(head);
    if (goes_early) on_close_();
    return absl::OkStatus();
  }

  absl::Status Write(const std::string& part) override {
    sent.body += part;
    return absl::OkStatus();
  }

  void OnClose(std::function<void()> callback) override { on_close_ = std::move(callback); }

  http::Response sent;
  // The client goes when it has seen the first part.
  bool goes_early = false;

 private:
  std::function<void()> on_close_;
};

class World {
 public:
  World() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&artifacts);
    server_ = builder.BuildAndStart();
    auto made = RestGateway::Create(server_->InProcessChannel({}), {"mtmc.v1.ArtifactService"});
    REQUIRE_THAT(made.status(), IsOk());
    gateway_ = *std::move(made);
  }

  http::Response Ask(const std::string& method, const std::string& target,
                     const std::string& body = "", const std::string& token = "Bearer good") {
    Recorder recorder;
    recorder.goes_early = goes_early;
    gateway_->Serve(
        {.method = method, .target = target, .headers = {{"authorization", token}}, .body = body},
        recorder);
    return recorder.sent;
  }

  Artifacts artifacts;
  bool goes_early = false;

 private:
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<RestGateway> gateway_;
};

TEST_CASE("A call answers JSON with the names of the contract", "[rest]") {
  World world;

  const auto answer =
      world.Ask("POST", "/v1/artifacts:findMissing", R"({"digests": [{"sizeBytes": "3"}]})");

  CHECK(answer.status == 200);
  CHECK(answer.content_type == "application/json");
  CHECK(Json::parse(answer.body) == Json::parse(R"({"missing": [{"size_bytes": "3"}]})"));
}

TEST_CASE("The caller's authorization decides, and an error keeps its details", "[rest]") {
  World world;

  const auto answer = world.Ask("POST", "/v1/artifacts:findMissing", "{}", "Bearer bad");

  CHECK(answer.status == 401);
  const Json error = Json::parse(answer.body)["error"];
  CHECK(error["status"] == "UNAUTHENTICATED");
  CHECK(error["message"] == "log in");
  CHECK_THAT(error["details"].dump(), Contains("TOKEN_MISSING"));
  const auto has = [&answer](const char* name, const char* value) {
    return std::find(answer.headers.begin(), answer.headers.end(),
                     std::pair<std::string, std::string>(name, value)) != answer.headers.end();
  };
  CHECK(has("WWW-Authenticate", "Bearer"));
  CHECK(has("Retry-After", "2"));
}

TEST_CASE("A header that gRPC could not carry is refused", "[rest]") {
  World world;

  CHECK(world.Ask("POST", "/v1/artifacts:findMissing", "{}", "Bearer \x80").status == 400);
}

TEST_CASE("A wrong method and a wrong path are told", "[rest]") {
  World world;

  const auto wrong = world.Ask("GET", "/v1/artifacts:findMissing");
  CHECK(wrong.status == 405);
  CHECK(wrong.headers == std::vector<std::pair<std::string, std::string>>{{"Allow", "POST"}});
  CHECK(world.Ask("GET", "/v1/jobs").status == 404);
}

TEST_CASE("A body is the one message of an upload", "[rest]") {
  World world;

  const auto answer = world.Ask("POST", "/v1/artifacts", R"({"chunk": "YWJj"})");

  CHECK(Json::parse(answer.body)["digest"]["size_bytes"] == "3");
}

TEST_CASE("A stream is a line for each message, and its error the last one", "[rest]") {
  World world;

  const auto good = world.Ask("GET", "/v1/artifacts/x?offset=2");
  CHECK(good.content_type == "application/x-ndjson");
  CHECK(good.body == "{\"chunk\":\"YWI=\"}\n{\"chunk\":\"YWI=\"}\n");

  const auto broken = world.Ask("GET", "/v1/artifacts/broken?offset=1");
  CHECK(broken.status == 200);
  CHECK_THAT(broken.body,
             Contains("YWI=") && Contains("\n{\"error\":") && Contains("ARTIFACT_NOT_FOUND"));
  CHECK(world.Ask("GET", "/v1/artifacts/broken").status == 404);
}

TEST_CASE("A client that has gone ends its stream at the server", "[rest]") {
  World world;
  world.goes_early = true;

  world.Ask("GET", "/v1/artifacts/endless?offset=1");

  CHECK(world.artifacts.was_cancelled.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

}  // namespace
}  // namespace mtmc::rest
