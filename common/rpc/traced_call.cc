// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/traced_call.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/client_interceptor.h>
#include <grpcpp/support/server_interceptor.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/rpc/error.h"
#include "common/rpc/status.h"
#include "common/trace/span.h"

namespace mtmc::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

constexpr char kHeader[] = "traceparent";

// What gRPC calls "/package.Service/Method", named as OpenTelemetry does.
trace::Span StartSpan(const char* method, trace::SpanKind kind, const base::TraceContext& parent) {
  std::string_view path = method == nullptr ? "" : method;
  if (path.starts_with('/')) path.remove_prefix(1);
  trace::Span span = trace::Span::Start(path, {.kind = kind, .parent = parent});
  span.Set("rpc.system", "grpc");
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return span;
  span.Set("rpc.service", std::string(path.substr(0, slash)));
  span.Set("rpc.method", std::string(path.substr(slash + 1)));
  return span;
}

// A server has not failed where it told a client of the client's mistake.
bool IsFault(grpc::StatusCode code, trace::SpanKind kind) {
  if (kind == trace::SpanKind::kClient) return code != grpc::StatusCode::OK;
  return code == grpc::StatusCode::UNKNOWN || code == grpc::StatusCode::DEADLINE_EXCEEDED ||
         code == grpc::StatusCode::UNIMPLEMENTED || code == grpc::StatusCode::INTERNAL ||
         code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::DATA_LOSS;
}

void SetStatus(const grpc::Status& status, trace::SpanKind kind, trace::Span& span) {
  span.Set("rpc.grpc.status_code", int64_t{status.error_code()});
  if (!IsFault(status.error_code(), kind)) return;
  // Without its message, which may quote what is nobody else's business.
  const std::string code =
      absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
  const std::string reason = ErrorReason(FromGrpc(status));
  span.Fail(reason.empty() ? code : code + ": " + reason);
}

// One per call, on the threads of gRPC.
class ClientTracer final : public grpc::experimental::Interceptor {
 public:
  explicit ClientTracer(const char* method)
      : span_(StartSpan(method, trace::SpanKind::kClient, base::CurrentTrace())) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(kHeader, FormatTraceParent(span_.context()));
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_STATUS)) {
      SetStatus(*methods->GetRecvStatus(), trace::SpanKind::kClient, span_);
      span_.End();
    }
    methods->Proceed();
  }

 private:
  trace::Span span_;
};

class ServerTracer final : public grpc::experimental::Interceptor {
 public:
  explicit ServerTracer(const char* method) : method_(method) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      Begin(*methods);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      SetStatus(methods->GetSendStatus(), trace::SpanKind::kServer, span_);
    }
    methods->Proceed();
  }

 private:
  void Begin(InterceptorBatchMethods& methods) {
    auto* metadata = methods.GetRecvInitialMetadata();
    // Null where the call died first.
    if (metadata == nullptr) return;
    const auto header = metadata->find(kHeader);
    if (header == metadata->end()) return;
    const auto caller =
        base::ParseTraceParent(std::string_view(header->second.data(), header->second.size()));
    if (!caller) return;
    span_ = StartSpan(method_, trace::SpanKind::kServer, *caller);
    if (!span_.is_recording()) return;
    header_ = FormatTraceParent(span_.context());
    header->second = grpc::string_ref(header_.data(), header_.size());
  }

  const char* const method_;
  // What the metadata of the call refer to; ends with the call, as they do.
  std::string header_;
  trace::Span span_;
};

class ClientFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo* info) override {
    const bool is_traced = trace::IsTracing() && base::CurrentTrace().is_sampled;
    return is_traced ? new ClientTracer(info->method()) : nullptr;  // gRPC deletes it.
  }
};

class ServerFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    return trace::IsTracing() ? new ServerTracer(info->method()) : nullptr;  // gRPC deletes it.
  }
};

}  // namespace

std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> MakeClientTracer() {
  return std::make_unique<ClientFactory>();
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeServerTracer() {
  return std::make_unique<ServerFactory>();
}

base::TraceContext TraceOf(const grpc::ServerContextBase& context) {
  if (!trace::IsTracing()) return {};
  const auto& metadata = context.client_metadata();
  const auto header = metadata.find(kHeader);
  if (header == metadata.end()) return {};
  return base::ParseTraceParent(std::string_view(header->second.data(), header->second.size()))
      .value_or(base::TraceContext());
}

}  // namespace mtmc::rpc
