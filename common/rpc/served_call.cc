// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/served_call.h"

#include <grpcpp/support/server_interceptor.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"

namespace mtmc::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

// One per call; its end is the call's.
class CallObserver final : public grpc::experimental::Interceptor {
 public:
  CallObserver(const char* name, const OnServedCall& on_call) : on_call_(on_call) {
    // "/package.Service/Method".
    const std::string_view path = name == nullptr ? "" : name;
    const size_t slash = path.rfind('/');
    if (slash == path.npos || slash == 0) return;
    call_.service = path.substr(1, slash - 1);
    call_.method = path.substr(slash + 1);
  }

  ~CallObserver() override {
    if (call_.method.empty()) return;
    if (!has_status_) call_.code = absl::StatusCode::kCancelled;
    call_.duration = absl::Now() - start_;
    on_call_(call_);
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      call_.code = static_cast<absl::StatusCode>(methods->GetSendStatus().error_code());
      has_status_ = true;
    }
    methods->Proceed();
  }

 private:
  const OnServedCall& on_call_;
  const absl::Time start_ = absl::Now();
  ServedCall call_;
  std::atomic<bool> has_status_ = false;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(OnServedCall on_call) : on_call_(std::move(on_call)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    return new CallObserver(info->method(), on_call_);  // gRPC deletes it.
  }

 private:
  const OnServedCall on_call_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallObserver(
    OnServedCall on_call) {
  return std::make_unique<Factory>(std::move(on_call));
}

}  // namespace mtmc::rpc
