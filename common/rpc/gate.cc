// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/gate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_interceptor.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/id.h"
#include "common/rpc/status.h"

namespace mtmc::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::internal::MethodHandler;
using grpc::internal::RpcMethod;

// An interceptor of gRPC sees a call, and may change what is answered, but cannot keep
// the method from running; a handler can, but answers UNIMPLEMENTED then. So both work
// together: the interceptor notes on a call that it may pass, the handler runs the method
// only with that note, and the interceptor gives the answer to what was refused. The note
// lies among the metadata of the call; a client cannot write it, because it is random.
constexpr char kAdmitted[] = "mtmc-admitted";
// Beside the note, and worth nothing without it.
constexpr char kCaller[] = "mtmc-caller";
constexpr char kCallerNote[] = "mtmc-caller-note";
constexpr char kAuthorization[] = "authorization";
constexpr std::string_view kOurs = "mtmc.";

const std::string& Note() {
  static const auto& note = *new std::string(base::MakeUuid4());
  return note;
}

bool HasNote(const grpc::ServerContextBase& context) {
  const auto found = context.client_metadata().find(kAdmitted);
  return found != context.client_metadata().end() && found->second == Note();
}

std::string Noted(const grpc::ServerContextBase& context, const char* key) {
  if (!HasNote(context)) return "";
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return "";
  return std::string(found->second.data(), found->second.size());
}

class GateHandler final : public MethodHandler {
 public:
  explicit GateHandler(MethodHandler& inner) : inner_(inner) {}

  void RunHandler(const HandlerParameter& parameter) override {
    if (HasNote(*parameter.server_context)) return inner_.RunHandler(parameter);
    inner_.RunHandler(HandlerParameter(parameter.call, parameter.server_context, parameter.request,
                                       grpc::Status(grpc::StatusCode::PERMISSION_DENIED, ""),
                                       parameter.internal_data, parameter.call_requester));
  }

  void* Deserialize(grpc_call* call, grpc_byte_buffer* request, grpc::Status* status,
                    void** handler_data) override {
    return inner_.Deserialize(call, request, status, handler_data);
  }

 private:
  MethodHandler& inner_;
};

RpcMethod::RpcType TypeOf(const google::protobuf::MethodDescriptor& method) {
  if (method.client_streaming()) {
    return method.server_streaming() ? RpcMethod::BIDI_STREAMING : RpcMethod::CLIENT_STREAMING;
  }
  return method.server_streaming() ? RpcMethod::SERVER_STREAMING : RpcMethod::NORMAL_RPC;
}

class GatedService final : public grpc::Service {
 public:
  GatedService(grpc::Service& service, const google::protobuf::ServiceDescriptor& descriptor) {
    for (int i = 0; i < descriptor.method_count(); ++i) {
      const auto& method = *descriptor.method(i);

      // gRPC keeps the pointer to the name.
      names_.push_back(std::make_unique<std::string>(
          absl::StrCat("/", descriptor.full_name(), "/", method.name())));
      // Of a generated class, whose methods are in the order of the contract.
      MethodHandler* handler = (service.*(&GatedService::GetHandler))(static_cast<size_t>(i));
      MTMC_CHECK(handler != nullptr);
      AddMethod(
          new grpc::internal::RpcServiceMethod(names_.back()->c_str(), TypeOf(method), nullptr));
      MarkMethodCallback(i, new GateHandler(*handler));
    }
  }

 private:
  std::vector<std::unique_ptr<std::string>> names_;
};

// One per call; its end is the call's.
class GateInterceptor final : public grpc::experimental::Interceptor {
 public:
  GateInterceptor(grpc::experimental::ServerRpcInfo& info, Gate& gate) : info_(info), gate_(gate) {}

  ~GateInterceptor() override {
    if (decision_.on_end) decision_.on_end(code_);
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      Arrive(*methods);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      if (!decision_.status.ok()) methods->ModifySendStatus(ToGrpc(decision_.status));
      code_ = static_cast<absl::StatusCode>(methods->GetSendStatus().error_code());
    }
    methods->Proceed();
  }

 private:
  void Arrive(InterceptorBatchMethods& methods) {
    auto* metadata = methods.GetRecvInitialMetadata();
    metadata->erase(kAdmitted);
    metadata->erase(kCaller);
    metadata->erase(kCallerNote);
    // "/package.Service/Method".
    const std::string_view path = info_.method() == nullptr ? "" : info_.method();
    const size_t slash = path.rfind('/');
    if (slash == path.npos || slash == 0) return;
    ArrivedCall call{.service = path.substr(1, slash - 1), .method = path.substr(slash + 1)};
    // What is not of the contract is not behind the gate either.
    if (!call.service.starts_with(kOurs)) return;
    const auto [begin, end] = metadata->equal_range(kAuthorization);
    for (auto it = begin; it != end; ++it) {
      call.authorization.emplace_back(it->second.data(), it->second.size());
    }
    call.peer = info_.server_context()->peer();
    if (methods.QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      // Generated classes derive from Message alone, so that the addresses are equal.
      call.request = static_cast<const google::protobuf::Message*>(methods.GetRecvMessage());
    }
    decision_ = gate_.Decide(call);
    if (!decision_.status.ok()) return;
    metadata->emplace(kAdmitted, Note());
    metadata->emplace(kCaller, decision_.caller);
    metadata->emplace(kCallerNote, decision_.caller_note);
  }

  grpc::experimental::ServerRpcInfo& info_;
  Gate& gate_;
  Gate::Decision decision_;
  absl::StatusCode code_ = absl::StatusCode::kCancelled;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(Gate& gate) : gate_(gate) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    return new GateInterceptor(*info, gate_);  // gRPC deletes it.
  }

 private:
  Gate& gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> PutBehindGate(grpc::Service& service, const std::string& full_name) {
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(full_name);
  MTMC_CHECK(descriptor != nullptr);
  return std::make_unique<GatedService>(service, *descriptor);
}

std::string CallerOf(const grpc::ServerContextBase& context) { return Noted(context, kCaller); }

std::string CallerNoteOf(const grpc::ServerContextBase& context) {
  return Noted(context, kCallerNote);
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeGateInterceptor(
    Gate& gate) {
  return std::make_unique<Factory>(gate);
}

}  // namespace mtmc::rpc
