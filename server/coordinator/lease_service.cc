// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/rpc/deadline.h"
#include "common/rpc/error.h"
#include "common/rpc/gate.h"
#include "common/rpc/status.h"
#include "mtmc/v1/worker.grpc.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/relay.h"
#include "server/coordinator/seat.h"
#include "server/coordinator/services.h"

namespace mtmc::coordinator {
namespace {

// One call of a worker, which the owner of the jobs may hold for seconds. Shared by
// gRPC, until OnDone, and by whoever answers it.
class HeldCall {
 public:
  class Reactor final : public grpc::ServerUnaryReactor {
   public:
    explicit Reactor(std::shared_ptr<HeldCall> call) : call_(std::move(call)) {}

    void OnCancel() override { call_->Cancel(); }

    void OnDone() override { delete this; }

   private:
    const std::shared_ptr<HeldCall> call_;
  };

  explicit HeldCall(v1::SynchronizeResponse& response) : response_(response) {}

  // `on_cancel` tells whoever holds the call that its worker is gone. Call once, before
  // the call is given away.
  Reactor* Open(const std::shared_ptr<HeldCall>& self, std::function<void()> on_cancel) {
    auto* reactor = new Reactor(self);
    absl::MutexLock lock(&mu_);
    reactor_ = reactor;
    on_cancel_ = std::move(on_cancel);
    return reactor;
  }

  // The first of answer and cancellation counts.
  void Finish(absl::StatusOr<v1::SynchronizeResponse> result) {
    absl::MutexLock lock(&mu_);
    if (reactor_ == nullptr) return;
    if (result.ok()) response_ = *std::move(result);
    std::exchange(reactor_, nullptr)->Finish(rpc::ToGrpc(result.status()));
  }

 private:
  // The worker is gone: nothing may be granted through this call, and gRPC wants it
  // finished.
  void Cancel() {
    std::function<void()> on_cancel;
    {
      absl::MutexLock lock(&mu_);
      on_cancel.swap(on_cancel_);
    }
    if (on_cancel) on_cancel();
    Finish(absl::CancelledError());
  }

  absl::Mutex mu_;
  // Null once finished; gRPC may delete it any time after.
  Reactor* reactor_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(mu_);
  v1::SynchronizeResponse& response_ ABSL_GUARDED_BY(mu_);
};

// The right to answer: a coordinator that is destroyed without an answer has given one.
class Answer {
 public:
  explicit Answer(std::shared_ptr<HeldCall> call) : call_(std::move(call)) {}

  ~Answer() {
    call_->Finish(rpc::MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                                 "the coordinator stops; call again until it is back"));
  }

  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void Give(absl::StatusOr<v1::SynchronizeResponse> result) { call_->Finish(std::move(result)); }

 private:
  const std::shared_ptr<HeldCall> call_;
};

// A call that the owner, another process, answers.
struct RelayedCall {
  grpc::ClientContext context;
  v1::SynchronizeRequest request;
  v1::SynchronizeResponse response;
  std::unique_ptr<v1::LeaseService::Stub> stub;
};

// Longer than any call is held; an owner that hangs is missed by its beats long before.
constexpr absl::Duration kMaxRelayed = absl::Minutes(1);

class LeaseService final : public v1::LeaseService::CallbackService {
 public:
  LeaseService(Seat& seat, Relay& relay) : seat_(seat), relay_(relay) {}

  grpc::ServerUnaryReactor* Synchronize(grpc::CallbackServerContext* context,
                                        const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response) override {
    auto call = std::make_shared<HeldCall>(*response);
    if (const auto coordinator = seat_.local())
      return Hold(call, coordinator, *request, rpc::CallerOf(*context));
    return Forward(call, *context, *request);
  }

 private:
  static grpc::ServerUnaryReactor* Hold(const std::shared_ptr<HeldCall>& call,
                                        const std::shared_ptr<Coordinator>& coordinator,
                                        const v1::SynchronizeRequest& request,
                                        const std::string& identity) {
    // Weak, because the coordinator holds the call: together they would live for ever.
    auto* reactor =
        call->Open(call, [weak = std::weak_ptr(coordinator), worker = request.worker().name(),
                          instance = request.instance_id(), identity] {
          if (const auto living = weak.lock()) living->Disconnect(worker, instance, identity);
        });
    auto answer = std::make_shared<Answer>(call);
    coordinator->Synchronize(request, identity,
                             [answer](absl::StatusOr<v1::SynchronizeResponse> result) {
                               answer->Give(std::move(result));
                             });
    return reactor;
  }

  grpc::ServerUnaryReactor* Forward(const std::shared_ptr<HeldCall>& call,
                                    const grpc::CallbackServerContext& context,
                                    const v1::SynchronizeRequest& request) {
    const auto channel = relay_.ChannelFor(context);
    if (!channel.ok()) {
      auto* reactor = call->Open(call, nullptr);
      call->Finish(channel.status());
      return reactor;
    }
    auto relayed = std::make_shared<RelayedCall>();
    Relay::Prepare(context, relayed->context);
    rpc::SetDeadline(relayed->context, absl::Now() + kMaxRelayed);
    relayed->request = request;
    relayed->stub = v1::LeaseService::NewStub(*channel);
    auto* reactor = call->Open(call, [relayed] { relayed->context.TryCancel(); });
    relayed->stub->async()->Synchronize(&relayed->context, &relayed->request, &relayed->response,
                                        [call, relayed](const grpc::Status& status) {
                                          if (status.ok()) {
                                            call->Finish(std::move(relayed->response));
                                          } else {
                                            call->Finish(rpc::FromGrpc(status));
                                          }
                                        });
    return reactor;
  }

  Seat& seat_;
  Relay& relay_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLeaseService(Seat& seat, Relay& relay) {
  return std::make_unique<LeaseService>(seat, relay);
}

}  // namespace mtmc::coordinator
