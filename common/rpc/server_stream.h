// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/rpc/status.h"

namespace mtmc::rpc {

// The server's side of a stream of responses. It owns the rules: one write in
// flight, a bounded queue, finish exactly once, and the end of gRPC's object.
//
//   grpc::ServerWriteReactor<WatchJobResponse>* WatchJob(...) override {
//     auto stream = rpc::ServerStream<WatchJobResponse>::Create({});
//     producer.Subscribe(stream);          // calls Write() and Close()
//     return stream->reactor();            // exactly once
//   }
//
// Shared by the producer and gRPC; the last of them frees it. Once the client
// has gone or Close() was called, Write() fails and the producer lets go.
// Thread-safe.
template <typename Response>
class ServerStream {
 public:
  struct Options {
    // Responses that wait for the network. 256 events of a job are some minutes
    // of progress; a client further behind resumes from its cursor.
    std::size_t max_queued = 256;
    // Called once, on a thread of gRPC, when the call is over for any reason.
    std::function<void()> on_done;
  };

  static std::shared_ptr<ServerStream> Create(Options options) {
    auto stream = std::shared_ptr<ServerStream>(new ServerStream(std::move(options)));
    absl::MutexLock lock(&stream->mu_);
    stream->reactor_ = new Reactor(stream);
    return stream;
  }

  // For the return of the method; owned by gRPC from there.
  grpc::ServerWriteReactor<Response>* reactor() {
    absl::MutexLock lock(&mu_);
    return reactor_;
  }

  // Queues `response`, waiting for room until `deadline`. RESOURCE_EXHAUSTED if
  // there is none, CANCELLED when the stream is over.
  absl::Status Write(Response response, absl::Time deadline = absl::InfinitePast())
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the call with `status` once the queue is written; later ones do nothing.
  void Close(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether Write() can only fail.
  bool is_over() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return IsOver();
  }

 private:
  // gRPC's object: lives until OnDone() and keeps the stream alive till then.
  class Reactor final : public grpc::ServerWriteReactor<Response> {
   public:
    explicit Reactor(std::shared_ptr<ServerStream> stream) : stream_(std::move(stream)) {}

    void OnWriteDone(bool is_ok) override { stream_->OnWriteDone(is_ok); }

    void OnCancel() override { stream_->OnCancel(); }

    void OnDone() override {
      stream_->OnDone();
      delete this;
    }

   private:
    const std::shared_ptr<ServerStream> stream_;
  };

  explicit ServerStream(Options options) : options_(std::move(options)) {}

  bool IsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_cancelled_ || final_status_.has_value();
  }

  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return IsOver() || queue_.size() < options_.max_queued;
  }

  // Starts the next write or the finish, when neither is under way.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnWriteDone(bool is_ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnCancel() ABSL_LOCKS_EXCLUDED(mu_);
  void OnDone() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;

  mutable absl::Mutex mu_;
  Reactor* reactor_ ABSL_GUARDED_BY(mu_) = nullptr;
  // The front is the one in flight while is_writing_.
  std::deque<Response> queue_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> final_status_ ABSL_GUARDED_BY(mu_);
  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
  bool is_finished_ ABSL_GUARDED_BY(mu_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

template <typename Response>
absl::Status ServerStream<Response>::Write(Response response, absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  const bool has_room =
      mu_.AwaitWithDeadline(absl::Condition(this, &ServerStream::HasRoom), deadline);
  if (IsOver()) return absl::CancelledError("the stream is over");
  if (!has_room) return absl::ResourceExhaustedError("the client reads too slowly");
  queue_.push_back(std::move(response));
  Advance();
  return absl::OkStatus();
}

template <typename Response>
void ServerStream<Response>::Close(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (final_status_) return;
  final_status_ = status;
  Advance();
}

template <typename Response>
void ServerStream<Response>::Advance() {
  if (is_writing_ || is_finished_ || reactor_ == nullptr) return;
  if (is_cancelled_ || (queue_.empty() && final_status_)) {
    is_finished_ = true;
    reactor_->Finish(ToGrpc(is_cancelled_ ? absl::CancelledError() : *final_status_));
  } else if (!queue_.empty()) {
    is_writing_ = true;
    reactor_->StartWrite(&queue_.front());
  }
}

template <typename Response>
void ServerStream<Response>::OnWriteDone(bool is_ok) {
  absl::MutexLock lock(&mu_);
  is_writing_ = false;
  queue_.pop_front();
  if (!is_ok) is_cancelled_ = true;
  Advance();
}

template <typename Response>
void ServerStream<Response>::OnCancel() {
  absl::MutexLock lock(&mu_);
  is_cancelled_ = true;
  Advance();
}

template <typename Response>
void ServerStream<Response>::OnDone() {
  {
    absl::MutexLock lock(&mu_);
    is_cancelled_ = true;
    reactor_ = nullptr;
  }
  if (options_.on_done) options_.on_done();
}

}  // namespace mtmc::rpc
