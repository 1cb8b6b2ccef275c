// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/server.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/test_service.h"
#include "common/testing/status_matchers.h"

namespace mtmc::rpc {
namespace {

using testing::IsOk;
using testing::StatusIs;

absl::Time Soon() { return absl::Now() + absl::Seconds(10); }

std::unique_ptr<RpcServer> Serve(TestService& service) {
  auto server = RpcServer::Create({.services = {&service}});
  REQUIRE_THAT(server.status(), IsOk());
  return *std::move(server);
}

absl::Status Find(const RpcServer& server, absl::Time deadline, grpc::ClientContext& context) {
  auto stub =
      v1::ArtifactService::NewStub(MakeChannel(server.address(), {.retries_unavailable = false}));
  SetDeadline(context, deadline);
  v1::FindMissingArtifactsResponse response;
  return FromGrpc(stub->FindMissingArtifacts(&context, {}, &response));
}

absl::Status Find(const RpcServer& server, absl::Time deadline) {
  grpc::ClientContext context;
  return Find(server, deadline, context);
}

TEST_CASE("A unary method answers with what its function returns", "[rpc]") {
  TestService service;
  const auto server = Serve(service);

  CHECK_THAT(Find(*server, Soon()), IsOk());
}

TEST_CASE("A unary method passes on the reason of an error", "[rpc]") {
  TestService service;
  service.find = [](const auto&, const auto&) {
    return MakeError(absl::StatusCode::kNotFound, "NOTHING_THERE", "nothing");
  };
  const auto server = Serve(service);

  const absl::Status status = Find(*server, Soon());

  CHECK_THAT(status, StatusIs(absl::StatusCode::kNotFound, "nothing"));
  CHECK(ErrorReason(status) == "NOTHING_THERE");
}

// Calls that a server has told of. Thread-safe.
class CallBook {
 public:
  OnServedCall Writer() {
    return [this](const ServedCall& call) {
      absl::MutexLock lock(&mu_);
      calls_.push_back(call);
    };
  }

  // Waits until there are `count`.
  std::vector<ServedCall> Await(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto has_them = [&] {
      mu_.AssertReaderHeld();
      return calls_.size() >= count;
    };
    REQUIRE(mu_.AwaitWithTimeout(absl::Condition(&has_them), absl::Seconds(20)));
    return calls_;
  }

 private:
  absl::Mutex mu_;
  std::vector<ServedCall> calls_ ABSL_GUARDED_BY(mu_);
};

TEST_CASE("A server tells of each call how it was answered", "[rpc]") {
  CallBook book;
  TestService service;
  service.find = [](const auto&, const auto&) { return absl::NotFoundError("nothing"); };
  service.download = [](std::shared_ptr<TestService::DownloadStream> stream) {
    stream->Close(absl::OkStatus());
  };
  const auto server = RpcServer::Create({.services = {&service}, .on_call = book.Writer()});
  REQUIRE_THAT(server.status(), IsOk());

  Find(**server, Soon()).IgnoreError();
  const ServedCall unary = book.Await(1).front();
  auto stub = v1::ArtifactService::NewStub(MakeChannel((*server)->address()));
  grpc::ClientContext context;
  v1::DownloadArtifactResponse response;
  const auto reader = stub->DownloadArtifact(&context, {});
  while (reader->Read(&response)) continue;
  CHECK(reader->Finish().ok());
  const ServedCall stream = book.Await(2).back();

  CHECK(unary.service == "mtmc.v1.ArtifactService");
  CHECK(unary.method == "FindMissingArtifacts");
  CHECK(unary.code == absl::StatusCode::kNotFound);
  CHECK(unary.duration >= absl::ZeroDuration());
  CHECK(stream.method == "DownloadArtifact");
  CHECK(stream.code == absl::StatusCode::kOk);
}

TEST_CASE("A call whose client has gone is told as cancelled", "[rpc]") {
  CallBook book;
  TestService service;
  absl::Notification has_started;
  service.find = [&](const auto&, const Call& call) {
    has_started.Notify();
    while (!call.is_cancelled()) std::this_thread::yield();
    return absl::CancelledError();
  };
  const auto server = RpcServer::Create({.services = {&service}, .on_call = book.Writer()});
  REQUIRE_THAT(server.status(), IsOk());
  grpc::ClientContext context;
  std::thread caller([&] { Find(**server, Soon(), context).IgnoreError(); });
  has_started.WaitForNotification();

  context.TryCancel();
  caller.join();

  CHECK(book.Await(1).front().code == absl::StatusCode::kCancelled);
}

TEST_CASE("A connection is watched without waiting", "[rpc]") {
  TestService service;
  auto server = Serve(service);
  const std::string address = server->address();

  const auto is_there = WatchConnection(address);
  const absl::Time deadline = Soon();
  while (!is_there().ok() && absl::Now() < deadline) std::this_thread::yield();
  CHECK_THAT(is_there(), IsOk());
  server.reset();

  while (is_there().ok() && absl::Now() < deadline) std::this_thread::yield();
  CHECK_THAT(is_there(), StatusIs(absl::StatusCode::kUnavailable, address));
}

TEST_CASE("A unary function learns that its client has gone", "[rpc]") {
  TestService service;
  absl::Notification has_started;
  absl::Notification has_seen_cancel;
  service.find = [&](const auto&, const Call& call) {
    has_started.Notify();
    while (!call.is_cancelled()) std::this_thread::yield();
    has_seen_cancel.Notify();
    return absl::CancelledError();
  };
  const auto server = Serve(service);
  grpc::ClientContext context;
  absl::Status status;
  std::thread caller([&] { status = Find(*server, Soon(), context); });
  has_started.WaitForNotification();

  context.TryCancel();

  caller.join();
  CHECK_THAT(status, StatusIs(absl::StatusCode::kCancelled));
  CHECK(has_seen_cancel.WaitForNotificationWithTimeout(absl::Seconds(10)));
}

TEST_CASE("A full executor answers OVERLOADED", "[rpc]") {
  TestService service({.name = "full", .num_threads = 1, .max_queued = 0});
  const auto server = Serve(service);

  const absl::Status status = Find(*server, Soon());

  CHECK_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK(ErrorReason(status) == "OVERLOADED");
  CHECK(RetryDelay(status) > absl::ZeroDuration());
}

TEST_CASE("A port in use is PORT_TAKEN", "[rpc]") {
  TestService service;
  const auto first = Serve(service);

  const auto second = RpcServer::Create({.address = first->address(), .services = {&service}});

  CHECK_THAT(second.status(), StatusIs(absl::StatusCode::kUnavailable, first->address()));
  CHECK(ErrorReason(second.status()) == "PORT_TAKEN");
}

TEST_CASE("An address that cannot be bound is ADDRESS_INVALID", "[rpc]") {
  CHECK(ErrorReason(RpcServer::Create({.address = "nonsense"}).status()) == "ADDRESS_INVALID");
  CHECK(ErrorReason(RpcServer::Create({.address = "192.0.2.1:0"}).status()) == "ADDRESS_INVALID");
}

TEST_CASE("Shutdown lets a call in flight end", "[rpc]") {
  TestService service;
  absl::Notification has_started;
  absl::Notification may_end;
  service.find = [&](const auto&, const auto&) {
    has_started.Notify();
    may_end.WaitForNotification();
    return v1::FindMissingArtifactsResponse();
  };
  const auto server = Serve(service);
  absl::Status status = absl::UnknownError("no answer");
  std::thread caller([&] { status = Find(*server, Soon()); });
  has_started.WaitForNotification();
  std::thread stopper([&] { server->Shutdown(Soon()); });

  may_end.Notify();

  caller.join();
  stopper.join();
  CHECK_THAT(status, IsOk());
}

}  // namespace
}  // namespace mtmc::rpc
