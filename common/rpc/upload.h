// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/executor.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "common/rpc/unary.h"

namespace mtmc::rpc {

// What a server does with a stream of requests that ends in one response. One
// object per call; its functions run one after the other, never at once.
template <typename Request, typename Response>
class UploadReceiver {
 public:
  // A call that ends early destroys the receiver without OnEnd().
  virtual ~UploadReceiver() = default;

  // An error ends the call with it.
  virtual absl::Status OnRequest(Request request) = 0;

  // The client has sent all, or died: gRPC cannot always tell in time. Check
  // that the content is complete (size, digest) before keeping it.
  virtual absl::StatusOr<Response> OnEnd() = 0;
};

// Serves a client-streaming method of the callback API with `receiver`, whose
// functions run on `executor` and may block:
//
//   grpc::ServerReadReactor<UploadArtifactRequest>* UploadArtifact(
//       grpc::CallbackServerContext*, UploadArtifactResponse* response) override {
//     return rpc::ServeUpload<UploadArtifactRequest>(
//         std::make_unique<ArtifactReceiver>(store_), *response, executor_);
//   }
template <typename Request, typename Response>
grpc::ServerReadReactor<Request>* ServeUpload(
    std::unique_ptr<std::type_identity_t<UploadReceiver<Request, Response>>> receiver,
    Response& response, base::Executor& executor);

// The client's side, for a thread that blocks:
//
//   auto upload = rpc::ClientUpload<UploadArtifactRequest, UploadArtifactResponse>::Start(
//       [&](grpc::ClientContext* context, auto* response, auto* reactor) {
//         stub->async()->UploadArtifact(context, response, reactor);
//       }, deadline);
//   while (...) if (!upload.Write(chunk)) break;    // the server has answered early
//   return upload.Finish();
//
// Move-only; the destructor cancels a call that was not finished and waits for
// its end. Thread-compatible.
template <typename Request, typename Response>
class ClientUpload {
 public:
  // The whole call ends by `deadline`.
  template <typename StartCall>
  static ClientUpload Start(StartCall start, absl::Time deadline) {
    auto reactor = std::make_unique<Reactor>();
    SetDeadline(reactor->context, deadline);
    start(&reactor->context, &reactor->response,
          static_cast<grpc::ClientWriteReactor<Request>*>(reactor.get()));
    reactor->Begin();
    return ClientUpload(std::move(reactor));
  }

  ClientUpload(ClientUpload&&) noexcept = default;
  ClientUpload& operator=(ClientUpload&&) = delete;

  ~ClientUpload() {
    if (reactor_ == nullptr) return;
    reactor_->context.TryCancel();
    Finish().IgnoreError();  // Nobody waits for the answer of an upload given up.
  }

  // Sends one request and blocks until it is on its way; false when the call is
  // over, and Finish() says why.
  bool Write(const Request& request) { return reactor_->Write(request); }

  // Says that all is sent, and waits for the answer. REQUIRES: called once.
  absl::StatusOr<Response> Finish() {
    const std::unique_ptr<Reactor> reactor = std::move(reactor_);
    const absl::Status status = reactor->Finish();
    if (!status.ok()) return status;
    return std::move(reactor->response);
  }

 private:
  class Reactor final : public grpc::ClientWriteReactor<Request> {
   public:
    void Begin() {
      // Between writes no operation keeps the call alive; the hold does.
      this->AddHold();
      this->StartCall();
    }

    bool Write(const Request& request) ABSL_LOCKS_EXCLUDED(mu_) {
      absl::MutexLock lock(&mu_);
      if (!is_open_) return false;
      is_writing_ = true;
      this->StartWrite(&request);
      mu_.Await(absl::Condition(this, &Reactor::IsIdle));
      return is_open_;
    }

    absl::Status Finish() ABSL_LOCKS_EXCLUDED(mu_) {
      this->StartWritesDone();
      this->RemoveHold();
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &Reactor::IsDone));
      return *final_status_;
    }

    void OnWriteDone(bool is_ok) override {
      absl::MutexLock lock(&mu_);
      is_writing_ = false;
      is_open_ = is_ok;
    }

    void OnDone(const grpc::Status& status) override {
      absl::MutexLock lock(&mu_);
      final_status_ = FromGrpc(status);
    }

    grpc::ClientContext context;
    Response response;

   private:
    bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !is_writing_; }

    bool IsDone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return final_status_.has_value(); }

    absl::Mutex mu_;
    bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
    bool is_open_ ABSL_GUARDED_BY(mu_) = true;
    std::optional<absl::Status> final_status_ ABSL_GUARDED_BY(mu_);
  };

  explicit ClientUpload(std::unique_ptr<Reactor> reactor) : reactor_(std::move(reactor)) {}

  std::unique_ptr<Reactor> reactor_;
};

// Implementation of the template.

namespace internal {

// Owned by gRPC; one read or one task is under way at any time, so nothing here
// is touched by two threads at once.
template <typename Request, typename Response>
class UploadReactor final : public grpc::ServerReadReactor<Request> {
 public:
  UploadReactor(std::unique_ptr<UploadReceiver<Request, Response>> receiver, Response& response,
                base::Executor& executor)
      : receiver_(std::move(receiver)), response_(response), executor_(executor) {
    this->StartRead(&request_);
  }

  void OnReadDone(bool is_ok) override {
    const absl::Status submitted = executor_.Submit([this, is_ok] {
      if (!is_ok) return End();
      const absl::Status status = receiver_->OnRequest(std::exchange(request_, Request()));
      if (!status.ok()) return this->Finish(ToGrpc(status));
      this->StartRead(&request_);
    });
    if (!submitted.ok()) this->Finish(ToGrpc(Overloaded(submitted)));
  }

  // A cancelled read is also "not ok", and may come before this.
  void OnCancel() override { is_cancelled_.store(true); }

  void OnDone() override { delete this; }

 private:
  void End() {
    if (is_cancelled_.load()) return this->Finish(ToGrpc(absl::CancelledError()));
    absl::StatusOr<Response> result = receiver_->OnEnd();
    if (result.ok()) response_ = *std::move(result);
    this->Finish(ToGrpc(result.status()));
  }

  const std::unique_ptr<UploadReceiver<Request, Response>> receiver_;
  Response& response_;
  base::Executor& executor_;
  Request request_;
  std::atomic<bool> is_cancelled_ = false;
};

}  // namespace internal

template <typename Request, typename Response>
grpc::ServerReadReactor<Request>* ServeUpload(
    std::unique_ptr<std::type_identity_t<UploadReceiver<Request, Response>>> receiver,
    Response& response, base::Executor& executor) {
  return new internal::UploadReactor<Request, Response>(std::move(receiver), response, executor);
}

}  // namespace mtmc::rpc
