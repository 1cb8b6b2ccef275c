// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"

namespace mtmc::rpc {

// The client's side of a stream of responses, read by a thread that blocks:
//
//   auto stream = rpc::ClientStream<WatchJobResponse>::Start(
//       [&](grpc::ClientContext* context, auto* reactor) {
//         stub->async()->WatchJob(context, &request, reactor);
//       });
//   while (true) {
//     MTMC_ASSIGN_OR_RETURN(auto response, stream.Next(deadline));
//     if (!response) break;                // the server ended it well
//   }
//
// It owns the rules: one read in flight, a bounded queue (the server is held back
// by flow control), and the end of gRPC's object. Move-only; the destructor
// cancels the call without waiting. Thread-safe.
template <typename Response>
class ClientStream {
 public:
  struct Options {
    // Of the whole call; a watch has none.
    absl::Time deadline = absl::InfiniteFuture();
    // Responses read ahead of Next().
    std::size_t max_queued = 64;
  };

  // `start` calls the stub's async method with the two objects given; what the
  // request points to is needed until Start() returns.
  template <typename StartCall>
  static ClientStream Start(StartCall start, Options options = Options()) {
    auto state = std::make_shared<State>(options.max_queued);
    auto* reactor = new Reactor(state);
    SetDeadline(reactor->context, options.deadline);
    {
      absl::MutexLock lock(&state->mu);
      state->context = &reactor->context;
    }
    start(&reactor->context, static_cast<grpc::ClientReadReactor<Response>*>(reactor));
    reactor->Begin();
    return ClientStream(std::move(state));
  }

  ClientStream(ClientStream&&) noexcept = default;

  ClientStream& operator=(ClientStream&& other) noexcept {
    Cancel();
    state_ = std::move(other.state_);
    return *this;
  }

  ~ClientStream() { Cancel(); }

  // The next response; absent when the server ended the stream with OK. Its
  // status when it ended it otherwise; DEADLINE_EXCEEDED at `deadline`, after
  // which one may ask again. Blocks.
  absl::StatusOr<std::optional<Response>> Next(absl::Time deadline = absl::InfiniteFuture());

  // Ends the call; Next() then drains the queue and says CANCELLED.
  void Cancel() {
    if (state_ == nullptr) return;
    absl::MutexLock lock(&state_->mu);
    if (state_->context != nullptr) state_->context->TryCancel();
    state_->is_cancelled = true;
    state_->ResumeRead();
  }

 private:
  class Reactor;

  struct State {
    explicit State(std::size_t max_queued_in) : max_queued(max_queued_in) {}

    // Starts a read that waited for room.
    void ResumeRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
      if (waiting == nullptr) return;
      if (queue.size() >= max_queued && !is_cancelled) return;
      std::exchange(waiting, nullptr)->ReadMore();
    }

    bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
      return !queue.empty() || final_status.has_value();
    }

    const std::size_t max_queued;

    absl::Mutex mu;
    std::deque<Response> queue ABSL_GUARDED_BY(mu);
    // The reactor, while it waits for room in the queue.
    Reactor* waiting ABSL_GUARDED_BY(mu) = nullptr;
    // Of the call in flight; null after its end.
    grpc::ClientContext* context ABSL_GUARDED_BY(mu) = nullptr;
    std::optional<absl::Status> final_status ABSL_GUARDED_BY(mu);
    bool is_cancelled ABSL_GUARDED_BY(mu) = false;
  };

  // gRPC's object: lives until OnDone(). A hold keeps it while it waits for room,
  // because then no operation of gRPC does.
  class Reactor final : public grpc::ClientReadReactor<Response> {
   public:
    explicit Reactor(std::shared_ptr<State> state) : state_(std::move(state)) {}

    void Begin() {
      this->AddHold();
      this->StartRead(&response_);
      this->StartCall();
    }

    void ReadMore() { this->StartRead(&response_); }

    void OnReadDone(bool is_ok) override {
      if (!is_ok) return this->RemoveHold();
      absl::MutexLock lock(&state_->mu);
      state_->queue.push_back(std::move(response_));
      response_.Clear();
      state_->waiting = this;
      state_->ResumeRead();
    }

    void OnDone(const grpc::Status& status) override {
      {
        absl::MutexLock lock(&state_->mu);
        state_->final_status = FromGrpc(status);
        state_->context = nullptr;
      }
      delete this;
    }

    grpc::ClientContext context;

   private:
    const std::shared_ptr<State> state_;
    Response response_;
  };

  explicit ClientStream(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

template <typename Response>
absl::StatusOr<std::optional<Response>> ClientStream<Response>::Next(absl::Time deadline) {
  absl::MutexLock lock(&state_->mu);
  if (!state_->mu.AwaitWithDeadline(absl::Condition(state_.get(), &State::HasNews), deadline)) {
    return absl::DeadlineExceededError("no response in time");
  }
  if (state_->queue.empty()) {
    if (!state_->final_status->ok()) return *state_->final_status;
    return std::optional<Response>();
  }
  std::optional<Response> response = std::move(state_->queue.front());
  state_->queue.pop_front();
  state_->ResumeRead();
  return response;
}

}  // namespace mtmc::rpc
