// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/coordinator_client.h"

#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "common/testing/status_matchers.h"
#include "mtmc/v1/artifact.grpc.pb.h"
#include "mtmc/v1/worker.grpc.pb.h"

namespace mtmc::worker {
namespace {

using testing::IsOk;
using testing::StatusIs;

constexpr absl::Duration kTimeout = absl::Seconds(30);

class Leases final : public v1::LeaseService::Service {
 public:
  grpc::Status Synchronize(grpc::ServerContext*, const v1::SynchronizeRequest*,
                           v1::SynchronizeResponse* response) override {
    response->mutable_idle();
    return grpc::Status::OK;
  }
};

// Serves one blob in two chunks; cuts the first `cuts` downloads off between them.
class Artifacts final : public v1::ArtifactService::Service {
 public:
  std::string first = "kernel ";
  std::string second = "text";
  int cuts = 0;
  int calls = 0;
  // The next download is refused with it.
  absl::Status refusal;

  v1::Digest digest() const {
    v1::Digest digest;
    digest.set_sha256(base::Sha256(first + second).sha256_hex);
    return digest;
  }

  grpc::Status DownloadArtifact(grpc::ServerContext*, const v1::DownloadArtifactRequest*,
                                grpc::ServerWriter<v1::DownloadArtifactResponse>* writer) override {
    ++calls;
    if (const absl::Status status = std::exchange(refusal, {}); !status.ok()) {
      return rpc::ToGrpc(status);
    }
    v1::DownloadArtifactResponse response;
    response.set_chunk(first);
    writer->Write(response);
    if (cuts-- > 0) return {grpc::StatusCode::UNAVAILABLE, "stopping"};
    response.set_chunk(second);
    writer->Write(response);
    return grpc::Status::OK;
  }
};

// A coordinator that can be stopped, and started again at the same address.
struct Coordinator {
  Leases leases;
  Artifacts artifacts;
  std::string address = "127.0.0.1:0";
  std::unique_ptr<rpc::RpcServer> server;

  Coordinator() { Start(); }

  void Start() {
    auto created = rpc::RpcServer::Create({.address = address, .services = {&leases, &artifacts}});
    REQUIRE_THAT(created.status(), IsOk());
    server = *std::move(created);
    address = server->address();
  }
};

TEST_CASE("A worker's connection comes back with the coordinator", "[worker]") {
  Coordinator coordinator;
  const auto client = ConnectToCoordinator(coordinator.address);
  REQUIRE_THAT(client->Synchronize({}, kTimeout).status(), IsOk());

  coordinator.server.reset();
  CHECK_THAT(client->Synchronize({}, kTimeout).status(), StatusIs(absl::StatusCode::kUnavailable));
  CHECK_FALSE(client->AwaitConnection(absl::Now() + absl::Milliseconds(50)));
  coordinator.Start();

  CHECK(client->AwaitConnection(absl::Now() + kTimeout));
  CHECK_THAT(client->Synchronize({}, kTimeout).status(), IsOk());
}

TEST_CASE("A download waits for a coordinator that restarts", "[worker]") {
  Coordinator coordinator;
  const auto client = ConnectToCoordinator(coordinator.address);
  coordinator.server.reset();

  absl::StatusOr<std::string> bytes;
  std::thread download([&] { bytes = client->Download(coordinator.artifacts.digest()); });
  coordinator.Start();
  download.join();

  REQUIRE_THAT(bytes.status(), IsOk());
  CHECK(*bytes == "kernel text");
}

TEST_CASE("A download that is cut off begins again", "[worker]") {
  Coordinator coordinator;
  coordinator.artifacts.cuts = 2;
  const auto client = ConnectToCoordinator(coordinator.address);

  const auto bytes = client->Download(coordinator.artifacts.digest());

  REQUIRE_THAT(bytes.status(), IsOk());
  CHECK(*bytes == "kernel text");
}

TEST_CASE("A download waits as long as a full coordinator asks", "[worker]") {
  Coordinator coordinator;
  constexpr absl::Duration kAsked = absl::Milliseconds(300);
  coordinator.artifacts.refusal = rpc::WithRetryDelay(
      rpc::MakeError(absl::StatusCode::kResourceExhausted, "OVERLOADED", "full"), kAsked);
  const auto client = ConnectToCoordinator(coordinator.address);
  const absl::Time start = absl::Now();

  const auto bytes = client->Download(coordinator.artifacts.digest());

  REQUIRE_THAT(bytes.status(), IsOk());
  CHECK(coordinator.artifacts.calls == 2);
  CHECK(absl::Now() - start >= kAsked);
}

TEST_CASE("A download that does not hash to its digest is refused", "[worker]") {
  Coordinator coordinator;
  const v1::Digest digest = coordinator.artifacts.digest();
  coordinator.artifacts.second = "other";
  const auto client = ConnectToCoordinator(coordinator.address);

  CHECK_THAT(client->Download(digest).status(), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace mtmc::worker
