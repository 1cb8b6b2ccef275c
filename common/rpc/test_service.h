// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mtmc/v1/artifact.grpc.pb.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/executor.h"
#include "common/rpc/gate.h"
#include "common/rpc/server_stream.h"
#include "common/rpc/unary.h"
#include "common/rpc/upload.h"

namespace mtmc::rpc {

// A small artifact service for the tests of this folder: one method of each
// kind, with behaviour chosen by the test.
class TestService final : public v1::ArtifactService::CallbackService {
 public:
  using DownloadStream = ServerStream<v1::DownloadArtifactResponse>;

  explicit TestService(base::Executor::Options options = {.name = "test"})
      : executor_(std::move(options)) {}

  // What FindMissingArtifacts does.
  std::function<absl::StatusOr<v1::FindMissingArtifactsResponse>(
      const v1::FindMissingArtifactsRequest&, const Call&)>
      find = [](const auto&, const auto&) { return v1::FindMissingArtifactsResponse(); };

  // Who made its last call, by CallerOf().
  std::string caller;
  std::string caller_note;

  // What DownloadArtifact does with its stream.
  std::function<void(std::shared_ptr<DownloadStream>)> download;
  DownloadStream::Options download_options;

  grpc::ServerUnaryReactor* FindMissingArtifacts(
      grpc::CallbackServerContext* context, const v1::FindMissingArtifactsRequest* request,
      v1::FindMissingArtifactsResponse* response) override {
    caller = CallerOf(*context);
    caller_note = CallerNoteOf(*context);
    return ServeUnary(context, *request, *response, executor_,
                      [this](const auto& asked, const Call& call) { return find(asked, call); });
  }

  grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* DownloadArtifact(
      grpc::CallbackServerContext*, const v1::DownloadArtifactRequest*) override {
    auto stream = DownloadStream::Create(download_options);
    auto* reactor = stream->reactor();
    download(stream);
    return reactor;
  }

  // Answers with all chunks joined in the digest; refuses the chunk "bad".
  grpc::ServerReadReactor<v1::UploadArtifactRequest>* UploadArtifact(
      grpc::CallbackServerContext*, v1::UploadArtifactResponse* response) override {
    return ServeUpload<v1::UploadArtifactRequest>(std::make_unique<Joiner>(), *response, executor_);
  }

 private:
  using Receiver = UploadReceiver<v1::UploadArtifactRequest, v1::UploadArtifactResponse>;

  class Joiner final : public Receiver {
   public:
    absl::Status OnRequest(v1::UploadArtifactRequest request) override {
      if (request.chunk() == "bad") return absl::InvalidArgumentError("a bad chunk");
      joined_ += request.chunk();
      return absl::OkStatus();
    }

    absl::StatusOr<v1::UploadArtifactResponse> OnEnd() override {
      v1::UploadArtifactResponse response;
      response.mutable_digest()->set_sha256(joined_);
      return response;
    }

   private:
    std::string joined_;
  };

  base::Executor executor_;
};

}  // namespace mtmc::rpc
