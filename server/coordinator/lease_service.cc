// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/status.h"
#include "mtmc/v1/worker.grpc.pb.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/services.h"

namespace mtmc::coordinator {
namespace {

// One call of a worker, which the coordinator may hold for seconds. Shared by
// gRPC, until OnDone, and by the reply that the coordinator keeps.
class HeldCall {
 public:
  class Reactor final : public grpc::ServerUnaryReactor {
   public:
    Reactor(std::shared_ptr<HeldCall> call, Coordinator& coordinator, std::string worker,
            std::string instance)
        : call_(std::move(call)),
          coordinator_(coordinator),
          worker_(std::move(worker)),
          instance_(std::move(instance)) {}

    // The worker is gone: nothing may be granted through this call, and gRPC
    // wants it finished.
    void OnCancel() override {
      coordinator_.Disconnect(worker_, instance_);
      call_->Finish(absl::CancelledError());
    }

    void OnDone() override { delete this; }

   private:
    const std::shared_ptr<HeldCall> call_;
    Coordinator& coordinator_;
    const std::string worker_;
    const std::string instance_;
  };

  explicit HeldCall(v1::SynchronizeResponse& response) : response_(response) {}

  void SetReactor(Reactor* reactor) {
    absl::MutexLock lock(&mu_);
    reactor_ = reactor;
  }

  // The first of reply and cancellation counts.
  void Finish(absl::StatusOr<v1::SynchronizeResponse> result) {
    absl::MutexLock lock(&mu_);
    if (reactor_ == nullptr) return;
    if (result.ok()) response_ = *std::move(result);
    std::exchange(reactor_, nullptr)->Finish(rpc::ToGrpc(result.status()));
  }

 private:
  absl::Mutex mu_;
  // Null once finished; gRPC may delete it any time after.
  Reactor* reactor_ ABSL_GUARDED_BY(mu_) = nullptr;
  v1::SynchronizeResponse& response_ ABSL_GUARDED_BY(mu_);
};

class LeaseService final : public v1::LeaseService::CallbackService {
 public:
  explicit LeaseService(Coordinator& coordinator) : coordinator_(coordinator) {}

  grpc::ServerUnaryReactor* Synchronize(grpc::CallbackServerContext* /*context*/,
                                        const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response) override {
    auto call = std::make_shared<HeldCall>(*response);
    auto* reactor =
        new HeldCall::Reactor(call, coordinator_, request->worker().name(), request->instance_id());
    call->SetReactor(reactor);
    coordinator_.Synchronize(*request, [call](absl::StatusOr<v1::SynchronizeResponse> result) {
      call->Finish(std::move(result));
    });
    return reactor;
  }

 private:
  Coordinator& coordinator_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLeaseService(Coordinator& coordinator) {
  return std::make_unique<LeaseService>(coordinator);
}

}  // namespace mtmc::coordinator
