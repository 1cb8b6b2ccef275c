// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/coordinator_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/patient_call.h"
#include "common/rpc/status.h"
#include "mtmc/v1/artifact.grpc.pb.h"
#include "mtmc/v1/worker.grpc.pb.h"

namespace mtmc::worker {
namespace {

// A problem's source or a program: far below a second even over a slow link; the
// rest is for a coordinator that restarts.
constexpr absl::Duration kDownloadTimeout = absl::Seconds(60);

// Tries of a download that a coordinator's end cuts off, or that it has no room for; each waits
// for a connection. Whoever has the lease waits longer, if that is worth it.
constexpr int kDownloadTries = 5;

class GrpcCoordinatorClient : public CoordinatorClient {
 public:
  GrpcCoordinatorClient(const std::string& endpoint, const rpc::ChannelSecurity& security)
      : channel_(rpc::MakeChannel(endpoint, {.retries_unavailable = false, .security = security})),
        leases_(v1::LeaseService::NewStub(channel_)),
        artifacts_(v1::ArtifactService::NewStub(channel_)) {}

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration timeout) override {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    {
      absl::MutexLock lock(&mu_);
      // Only a call that waits for work is worth cutting short.
      if (request.has_idle()) waiting_ = &context;
    }
    v1::SynchronizeResponse response;
    const grpc::Status status = leases_->Synchronize(&context, request, &response);
    {
      absl::MutexLock lock(&mu_);
      waiting_ = nullptr;
    }
    if (!status.ok()) return rpc::FromGrpc(status);
    return response;
  }

  void Interrupt() override {
    absl::MutexLock lock(&mu_);
    if (waiting_ != nullptr) waiting_->TryCancel();
  }

  bool AwaitConnection(absl::Time deadline) override {
    return channel_->WaitForConnected(absl::ToChronoTime(deadline));
  }

  absl::StatusOr<std::string> Download(const v1::Digest& digest) override {
    const absl::Time deadline = absl::Now() + kDownloadTimeout;
    const rpc::PatientCall call(
        clock_,
        {.patience = kDownloadTimeout, .repeats_unavailable = true, .max_calls = kDownloadTries});
    absl::StatusOr<std::string> bytes;
    MTMC_RETURN_IF_ERROR(call([&] { return (bytes = Read(digest, deadline)).status(); }));
    if (base::Sha256(*bytes).sha256_hex != digest.sha256()) {
      return absl::DataLossError(absl::StrCat("artifact ", digest.sha256(), " arrived damaged"));
    }
    return bytes;
  }

 private:
  absl::StatusOr<std::string> Read(const v1::Digest& digest, absl::Time deadline) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    context.set_wait_for_ready(true);
    v1::DownloadArtifactRequest request;
    *request.mutable_digest() = digest;
    auto reader = artifacts_->DownloadArtifact(&context, request);
    std::string bytes;
    v1::DownloadArtifactResponse response;
    while (reader->Read(&response)) bytes += response.chunk();
    const grpc::Status status = reader->Finish();
    if (!status.ok()) return rpc::FromGrpc(status);
    return bytes;
  }

  base::RealClock clock_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::LeaseService::Stub> leases_;
  const std::unique_ptr<v1::ArtifactService::Stub> artifacts_;

  absl::Mutex mu_;
  // The idle call under way, owned by Synchronize.
  grpc::ClientContext* waiting_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace

std::unique_ptr<CoordinatorClient> ConnectToCoordinator(const std::string& endpoint,
                                                        const rpc::ChannelSecurity& security) {
  return std::make_unique<GrpcCoordinatorClient>(endpoint, security);
}

}  // namespace mtmc::worker
