// SPDX-License-Identifier: Apache-2.0
#include "common/rest/rest_gateway.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/http/http_server.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace mtmc::rest {
namespace {

using Json = nlohmann::json;

constexpr char kJson[] = "application/json";
constexpr char kJsonLines[] = "application/x-ndjson";
// Of a call that is no stream.
constexpr absl::Duration kCallTimeout = absl::Seconds(60);
// Headers that a call carries on.
constexpr const char* kForwarded[] = {"authorization", "traceparent", "x-request-id"};

// As google.rpc.Code maps them.
int HttpStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

Json ErrorToJson(const absl::Status& status, int http_status) {
  Json error{{"code", http_status},
             {"status", absl::StatusCodeToString(status.code())},
             {"message", std::string(status.message())},
             {"details", Json::array()}};
  status.ForEachPayload([&error](absl::string_view type, const absl::Cord& payload) {
    google::protobuf::Any detail;
    detail.set_type_url(std::string(type));
    detail.set_value(std::string(payload));
    const auto json = ToJson(detail);
    if (json.ok()) error["details"].push_back(Json::parse(*json, nullptr, false));
  });
  return Json{{"error", std::move(error)}};
}

http::Response ErrorResponse(const absl::Status& status) {
  const bool is_wrong_method = rpc::ErrorReason(status) == "METHOD_NOT_ALLOWED";
  const int code = is_wrong_method ? 405 : HttpStatus(status.code());
  http::Response response{
      .status = code,
      .content_type = kJson,
      .body = ErrorToJson(status, code).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
      .headers = {}};
  if (is_wrong_method) {
    response.headers.emplace_back("Allow", rpc::ErrorMetadata(status)["allow"]);
  }
  if (status.code() == absl::StatusCode::kUnauthenticated) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  if (const absl::Duration delay = rpc::RetryDelay(status); delay > absl::ZeroDuration()) {
    response.headers.emplace_back(
        "Retry-After", absl::StrCat(absl::ToInt64Seconds(absl::Ceil(delay, absl::Seconds(1)))));
  }
  return response;
}

bool IsMetadata(const std::string& value) {
  return std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// One call of a method that is known by its descriptor alone, on this thread.
class GenericCall {
 public:
  GenericCall(const std::shared_ptr<grpc::Channel>& channel, const Call& call) : stub_(channel) {
    const auto& method = *call.method;
    path_ = absl::StrCat("/", method.service()->full_name(), "/", method.name());
    const std::string bytes = call.request->SerializeAsString();
    const grpc::Slice slice(bytes);
    request_ = grpc::ByteBuffer(&slice, 1);
  }

  ~GenericCall() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool is_ok = false;
    while (queue_.Next(&tag, &is_ok)) {
    }
  }

  grpc::ClientContext& context() { return context_; }

  void Start() {
    stream_ = stub_.PrepareCall(&context_, path_, &queue_);
    stream_->StartCall(nullptr);
    if (!Wait()) return;
    stream_->WriteLast(request_, grpc::WriteOptions(), nullptr);
    Wait();
  }

  // The next message; nothing at the end.
  std::optional<std::string> Read() {
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, nullptr);
    if (!Wait()) return std::nullopt;
    return ToString(buffer);
  }

  absl::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    Wait();
    return rpc::FromGrpc(status);
  }

 private:
  // One operation is under way at a time.
  bool Wait() {
    void* tag = nullptr;
    bool is_ok = false;
    return queue_.Next(&tag, &is_ok) && is_ok;
  }

  grpc::GenericStub stub_;
  std::string path_;
  grpc::ByteBuffer request_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

void AnswerUnary(const Call& call, GenericCall& running, http::ResponseWriter& writer) {
  const std::optional<std::string> wire = running.Read();
  const absl::Status status = running.Finish();
  if (!status.ok()) return writer.Send(ErrorResponse(status));
  const auto json = Transcoder::ResponseToJson(*call.method, wire.value_or(""));
  if (!json.ok()) return writer.Send(ErrorResponse(json.status()));
  writer.Send({.content_type = kJson, .body = *json + "\n", .headers = {}});
}

void AnswerStream(const Call& call, GenericCall& running, http::ResponseWriter& writer) {
  bool has_begun = false;
  const auto put = [&](const std::string& line) {
    if (has_begun) return writer.Write(line);
    has_begun = true;
    return writer.Begin({.content_type = kJsonLines, .body = line, .headers = {}});
  };
  while (const std::optional<std::string> wire = running.Read()) {
    const auto json = Transcoder::ResponseToJson(*call.method, *wire);
    if (!json.ok() || !put(*json + "\n").ok()) running.context().TryCancel();
  }
  const absl::Status status = running.Finish();
  if (!status.ok() && !has_begun) return writer.Send(ErrorResponse(status));
  if (status.ok()) return put("").IgnoreError();
  put(ErrorResponse(status).body).IgnoreError();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RestGateway>> RestGateway::Create(
    std::shared_ptr<grpc::Channel> channel, const std::vector<std::string>& services) {
  MTMC_ASSIGN_OR_RETURN(Transcoder transcoder, Transcoder::Make(services));
  return std::unique_ptr<RestGateway>(new RestGateway(std::move(channel), std::move(transcoder)));
}

RestGateway::RestGateway(std::shared_ptr<grpc::Channel> channel, Transcoder transcoder)
    : channel_(std::move(channel)), transcoder_(std::move(transcoder)) {}

void RestGateway::Serve(const http::Request& request, http::ResponseWriter& writer) const {
  const auto call = transcoder_.Transcode(request.method, request.target, request.body);
  if (!call.ok()) return writer.Send(ErrorResponse(call.status()));
  GenericCall running(channel_, *call);
  for (const char* name : kForwarded) {
    const auto header = request.headers.find(name);
    if (header == request.headers.end()) continue;
    // gRPC aborts the process on metadata that is none.
    if (!IsMetadata(header->second)) {
      return writer.Send(ErrorResponse(rpc::MakeError(
          absl::StatusCode::kInvalidArgument, "INVALID_HEADER",
          absl::StrCat("header ", name, " has characters that are not printable ASCII"))));
    }
    running.context().AddMetadata(name, header->second);
  }
  const bool is_stream = call->method->server_streaming();
  if (!is_stream) rpc::SetDeadline(running.context(), absl::Now() + kCallTimeout);
  writer.OnClose([&running] { running.context().TryCancel(); });
  running.Start();
  if (is_stream) {
    AnswerStream(*call, running, writer);
  } else {
    AnswerUnary(*call, running, writer);
  }
  // The call does not outlive this function.
  writer.OnClose(nullptr);
}

}  // namespace mtmc::rest
