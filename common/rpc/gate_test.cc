// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/gate.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/rpc/test_service.h"
#include "common/testing/status_matchers.h"

namespace mtmc::rpc {
namespace {

using testing::IsOk;

constexpr char kService[] = "mtmc.v1.ArtifactService";
// Longer than any call takes on a loaded host; nothing here waits for it.
constexpr absl::Duration kPatience = absl::Seconds(60);

// Lets in whoever says `Bearer good`.
class FakeGate final : public Gate {
 public:
  Decision Decide(const ArrivedCall& call) override {
    absl::MutexLock lock(&mu);
    seen = std::string(call.method);
    authorization.clear();
    for (const std::string_view one : call.authorization) authorization.emplace_back(one);
    request = call.request == nullptr ? "none" : call.request->ShortDebugString();
    const auto on_end = [this](absl::StatusCode code) {
      absl::MutexLock ended(&mu);
      end = code;
      has_ended = true;
    };
    if (authorization == std::vector<std::string>{"Bearer good"}) {
      return {.status = absl::OkStatus(),
              .on_end = on_end,
              .caller = "alice",
              .caller_note = "wears a hat"};
    }
    return {.status = WithRetryDelay(
                MakeError(absl::StatusCode::kUnauthenticated, "TOKEN_MISSING", "log in"),
                absl::Seconds(2)),
            .on_end = on_end};
  }

  absl::StatusCode AwaitEnd() {
    absl::MutexLock lock(&mu);
    mu.Await(absl::Condition(&has_ended));
    return end;
  }

  absl::Mutex mu;
  std::string seen;
  std::string request;
  std::vector<std::string> authorization;
  absl::StatusCode end = absl::StatusCode::kUnknown;
  bool has_ended = false;
};

// A service behind a gate, and a client of it.
struct Gated {
  explicit Gated(const std::string& token = "", bool has_interceptor = true) {
    service.find = [this](const auto&, const auto&) {
      ++runs;
      return v1::FindMissingArtifactsResponse();
    };
    service.download = [this](std::shared_ptr<TestService::DownloadStream> stream) {
      ++runs;
      stream->Close(absl::OkStatus());
    };
    RpcServer::Options options{.services = {gated.get()}};
    if (has_interceptor) {
      options.interceptors.push_back([this] { return MakeGateInterceptor(gate); });
      options.on_call = [this](const ServedCall& call) { counted = call.code; };
    }
    server = *RpcServer::Create(options);
    ChannelOptions channel;
    if (!token.empty()) {
      channel.security.token_file = folder.path() / "token";
      REQUIRE_THAT(base::WriteFileAtomically(channel.security.token_file, token), IsOk());
    }
    stub = v1::ArtifactService::NewStub(MakeChannel(server->address(), channel));
  }

  absl::Status Find(const std::string& authorization = "") {
    grpc::ClientContext context;
    SetDeadline(context, absl::Now() + kPatience);
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    // A client's own note is no admission.
    context.AddMetadata("mtmc-admitted", "1");
    context.AddMetadata("mtmc-caller", "mallory");
    context.AddMetadata("mtmc-caller-note", "owns it all");
    v1::FindMissingArtifactsRequest request;
    request.add_digests()->set_sha256("ab");
    v1::FindMissingArtifactsResponse response;
    return FromGrpc(stub->FindMissingArtifacts(&context, request, &response));
  }

  const base::TempDir folder = *base::TempDir::Create();
  std::atomic<int> runs = 0;
  // What the metrics would count.
  std::atomic<absl::StatusCode> counted = absl::StatusCode::kUnknown;
  FakeGate gate;
  TestService service;
  const std::unique_ptr<grpc::Service> gated = PutBehindGate(service, kService);
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<v1::ArtifactService::Stub> stub;
};

TEST_CASE("A call that the gate lets in runs, and its end is told", "[gate]") {
  Gated gated;

  CHECK_THAT(gated.Find("Bearer good"), IsOk());

  CHECK(gated.runs == 1);
  CHECK(gated.gate.AwaitEnd() == absl::StatusCode::kOk);
  CHECK(gated.gate.seen == "FindMissingArtifacts");
  CHECK(gated.gate.request == "digests { sha256: \"ab\" }");
}

TEST_CASE("The method knows its caller from the gate, not from the client", "[gate]") {
  Gated gated;

  CHECK_THAT(gated.Find("Bearer good"), IsOk());

  CHECK(gated.service.caller == "alice");
  CHECK(gated.service.caller_note == "wears a hat");
}

TEST_CASE("A call without a gate has no caller, whatever the client says", "[gate]") {
  TestService service;
  auto server = *RpcServer::Create({.services = {&service}});
  const auto stub = v1::ArtifactService::NewStub(MakeChannel(server->address(), {}));
  grpc::ClientContext context;
  SetDeadline(context, absl::Now() + kPatience);
  context.AddMetadata("mtmc-admitted", "1");
  context.AddMetadata("mtmc-caller", "mallory");
  context.AddMetadata("mtmc-caller-note", "owns it all");
  v1::FindMissingArtifactsResponse response;
  service.caller = "nobody yet";
  service.caller_note = "nothing yet";

  CHECK_THAT(FromGrpc(stub->FindMissingArtifacts(&context, {}, &response)), IsOk());

  CHECK(service.caller.empty());
  CHECK(service.caller_note.empty());
}

TEST_CASE("A call that the gate refuses gets its answer, and no method runs", "[gate]") {
  Gated gated;

  const absl::Status status = gated.Find("Bearer bad");

  CHECK(absl::IsUnauthenticated(status));
  CHECK(ErrorReason(status) == "TOKEN_MISSING");
  CHECK(RetryDelay(status) == absl::Seconds(2));
  CHECK(gated.gate.AwaitEnd() == absl::StatusCode::kUnauthenticated);
  gated.server->Shutdown(absl::InfiniteFuture());
  CHECK(gated.counted == absl::StatusCode::kUnauthenticated);
  CHECK(gated.runs == 0);
}

TEST_CASE("Streams are behind the gate as well, in both directions", "[gate]") {
  Gated gated;

  grpc::ClientContext download;
  v1::DownloadArtifactResponse part;
  auto reader = gated.stub->DownloadArtifact(&download, {});
  CHECK_FALSE(reader->Read(&part));
  CHECK(ErrorReason(FromGrpc(reader->Finish())) == "TOKEN_MISSING");

  grpc::ClientContext upload;
  v1::UploadArtifactResponse stored;
  auto writer = gated.stub->UploadArtifact(&upload, &stored);
  writer->Write({});
  writer->WritesDone();
  CHECK(ErrorReason(FromGrpc(writer->Finish())) == "TOKEN_MISSING");
  CHECK(gated.runs == 0);

  grpc::ClientContext admitted;
  admitted.AddMetadata("authorization", "Bearer good");
  v1::UploadArtifactRequest chunk;
  chunk.set_chunk("abc");
  writer = gated.stub->UploadArtifact(&admitted, &stored);
  writer->Write(chunk);
  writer->WritesDone();
  CHECK(writer->Finish().ok());
  CHECK(stored.digest().sha256() == "abc");
  CHECK(gated.gate.request == "none");
}

TEST_CASE("A service behind a gate that nobody keeps is closed", "[gate]") {
  Gated gated("", /*has_interceptor=*/false);

  CHECK_FALSE(gated.Find("Bearer good").ok());
  CHECK(gated.runs == 0);
}

TEST_CASE("Calls within the process meet the same gate", "[gate]") {
  Gated gated;
  gated.stub = v1::ArtifactService::NewStub(gated.server->MakeInProcessChannel());

  CHECK(ErrorReason(gated.Find()) == "TOKEN_MISSING");
  CHECK_THAT(gated.Find("Bearer good"), IsOk());
}

TEST_CASE("A channel sends the token of its file, also when the file changes", "[gate]") {
  Gated gated("bad\n");
  CHECK(ErrorReason(gated.Find()) == "TOKEN_MISSING");

  REQUIRE_THAT(base::WriteFileAtomically(gated.folder.path() / "token", "good\nnotes\n"), IsOk());
  CHECK_THAT(gated.Find(), IsOk());

  // A relayed call goes as its caller's.
  CHECK(ErrorReason(gated.Find("Bearer bad")) == "TOKEN_MISSING");
}

}  // namespace
}  // namespace mtmc::rpc
