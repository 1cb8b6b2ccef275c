// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "common/rpc/server_stream.h"
#include "common/rpc/unary.h"
#include "common/rpc/upload.h"
#include "mtmc/v1/artifact.grpc.pb.h"
#include "server/coordinator/artifact_access.h"
#include "server/coordinator/services.h"
#include "server/store/artifact_check.h"
#include "server/store/artifact_store.h"

namespace mtmc::coordinator {
namespace {

constexpr int kMaxDigests = 1000;
constexpr int64_t kChunkBytes = 1 << 20;
// Chunks queued for a slow client: 16 MiB of memory a download.
constexpr size_t kMaxQueuedChunks = 16;
constexpr absl::Duration kMaxWriteWait = absl::Seconds(30);

// Receives one upload.
class Receiver final
    : public rpc::UploadReceiver<v1::UploadArtifactRequest, v1::UploadArtifactResponse> {
 public:
  Receiver(store::ArtifactStore& artifacts, const ArtifactAccess& access, ArtifactRights rights)
      : artifacts_(artifacts), access_(access), rights_(std::move(rights)) {}

  absl::Status OnRequest(v1::UploadArtifactRequest request) override {
    if (writer_ == nullptr) {
      digest_ = request.digest();
      MTMC_ASSIGN_OR_RETURN(writer_, artifacts_.CreateWriter(digest_));
    }
    if (static_cast<int64_t>(request.chunk().size()) > kChunkBytes) {
      return rpc::MakeError(absl::StatusCode::kInvalidArgument, "CHUNK_TOO_LARGE",
                            absl::StrCat("chunk has ", request.chunk().size(), " bytes, at most ",
                                         kChunkBytes, " are allowed"));
    }
    return writer_->Append(request.chunk());
  }

  absl::StatusOr<v1::UploadArtifactResponse> OnEnd() override {
    if (writer_ == nullptr) {
      return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_DIGEST",
                            "the upload has no message; the first one carries the digest");
    }
    MTMC_RETURN_IF_ERROR(writer_->Finish());
    MTMC_RETURN_IF_ERROR(access_.RecordUpload(rights_, digest_));
    v1::UploadArtifactResponse response;
    *response.mutable_digest() = digest_;
    return response;
  }

 private:
  store::ArtifactStore& artifacts_;
  const ArtifactAccess& access_;
  const ArtifactRights rights_;
  v1::Digest digest_;
  std::unique_ptr<store::ArtifactWriter> writer_;
};

class ArtifactService final : public v1::ArtifactService::CallbackService {
 public:
  ArtifactService(store::ArtifactStore& artifacts, base::Executor& executor,
                  const ArtifactAccess& access)
      : artifacts_(artifacts), executor_(executor), access_(access) {}

  grpc::ServerUnaryReactor* FindMissingArtifacts(
      grpc::CallbackServerContext* context, const v1::FindMissingArtifactsRequest* request,
      v1::FindMissingArtifactsResponse* response) override {
    return rpc::ServeUnary(context, *request, *response, executor_,
                           [this, rights = access_.RightsOf(*context)](
                               const v1::FindMissingArtifactsRequest& find, const rpc::Call&) {
                             return FindMissing(find, rights);
                           });
  }

  grpc::ServerReadReactor<v1::UploadArtifactRequest>* UploadArtifact(
      grpc::CallbackServerContext* context, v1::UploadArtifactResponse* response) override {
    return rpc::ServeUpload<v1::UploadArtifactRequest, v1::UploadArtifactResponse>(
        std::make_unique<Receiver>(artifacts_, access_, access_.RightsOf(*context)), *response,
        executor_);
  }

  grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* DownloadArtifact(
      grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request) override {
    auto stream = rpc::ServerStream<v1::DownloadArtifactResponse>::Create(
        {.max_queued = kMaxQueuedChunks, .on_done = nullptr});
    const absl::Status status =
        executor_.Submit([this, stream, download = *request, rights = access_.RightsOf(*context)] {
          stream->Close(Send(download, rights, *stream));
        });
    if (!status.ok()) stream->Close(status);
    return stream->reactor();
  }

 private:
  absl::StatusOr<v1::FindMissingArtifactsResponse> FindMissing(
      const v1::FindMissingArtifactsRequest& request, const ArtifactRights& rights) {
    if (request.digests_size() > kMaxDigests) {
      return rpc::MakeError(absl::StatusCode::kInvalidArgument, "TOO_MANY_DIGESTS",
                            absl::StrCat("digests has ", request.digests_size(),
                                         " entries, at most ", kMaxDigests, " are allowed"));
    }
    std::vector<std::string> sha256s;
    for (const v1::Digest& digest : request.digests()) {
      MTMC_RETURN_IF_ERROR(store::CheckDigest(digest));
      sha256s.push_back(digest.sha256());
    }
    MTMC_ASSIGN_OR_RETURN(const auto readable, access_.FindReadable(rights, sha256s));
    v1::FindMissingArtifactsResponse response;
    for (const v1::Digest& digest : request.digests()) {
      absl::StatusOr<bool> is_stored = readable.contains(digest.sha256());
      if (*is_stored) is_stored = artifacts_.Contains(digest);
      if (!is_stored.ok()) return is_stored.status();
      if (!*is_stored) *response.add_missing() = digest;
    }
    return response;
  }

  absl::Status Send(const v1::DownloadArtifactRequest& request, const ArtifactRights& rights,
                    rpc::ServerStream<v1::DownloadArtifactResponse>& stream) {
    if (request.offset() < 0) {
      return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_OFFSET",
                            absl::StrCat("offset is ", request.offset(), ", must be at least 0"));
    }
    MTMC_RETURN_IF_ERROR(store::CheckDigest(request.digest()));
    MTMC_ASSIGN_OR_RETURN(const bool may_read, access_.MayRead(rights, request.digest()));
    if (!may_read) return store::ArtifactNotFound(request.digest());
    return artifacts_.Read(request.digest(), request.offset(), [&stream](std::string piece) {
      v1::DownloadArtifactResponse response;
      response.set_chunk(std::move(piece));
      return stream.Write(std::move(response), absl::Now() + kMaxWriteWait);
    });
  }

  store::ArtifactStore& artifacts_;
  base::Executor& executor_;
  const ArtifactAccess& access_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeArtifactService(store::ArtifactStore& artifacts,
                                                   base::Executor& executor,
                                                   const ArtifactAccess& access) {
  return std::make_unique<ArtifactService>(artifacts, executor, access);
}

}  // namespace mtmc::coordinator
