// SPDX-License-Identifier: Apache-2.0
#include "common/otlp/otlp_exporter.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/error.h"
#include "common/rpc/retry_rule.h"
#include "common/rpc/status.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"

namespace mtmc::otlp {
namespace {

namespace wire = opentelemetry::proto;
using wire::collector::trace::v1::ExportTraceServiceRequest;
using wire::collector::trace::v1::ExportTraceServiceResponse;
using wire::collector::trace::v1::TraceService;

// HOST:PORT without a scheme, and what the scheme asks of the channel.
absl::Status Resolve(std::string& endpoint, rpc::ChannelSecurity& security) {
  absl::string_view address = endpoint;
  const bool is_clear = absl::ConsumePrefix(&address, "http://");
  const bool is_secure = !is_clear && absl::ConsumePrefix(&address, "https://");
  absl::ConsumeSuffix(&address, "/");
  const std::size_t colon = address.rfind(':');
  const bool has_both = colon != address.npos && colon > 0 && colon + 1 < address.size();
  if (!has_both || absl::StrContains(address, "/")) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "ADDRESS_INVALID",
                          absl::StrCat("endpoint of traces is \"", endpoint,
                                       "\", must be HOST:PORT of OTLP over gRPC, with http:// or "
                                       "https:// before it or nothing"));
  }
  if (is_clear) security = {};
  // Of our own servers, and none of the collector's business.
  security.token_file.clear();
  if (is_secure && !security.has_tls()) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "TLS_INCOMPLETE",
                          absl::StrCat("endpoint of traces is \"", endpoint,
                                       "\"; give --tls-ca with its authorities"));
  }
  endpoint = std::string(address);
  return rpc::Check(security, endpoint);
}

uint64_t NanosOf(absl::Time time) { return static_cast<uint64_t>(absl::ToUnixNanos(time)); }

template <std::size_t kSize>
std::string Bytes(const std::array<uint8_t, kSize>& id) {
  return {id.begin(), id.end()};
}

void SetAttribute(const std::string& key, const trace::AttributeValue& value,
                  wire::common::v1::KeyValue& attribute) {
  attribute.set_key(key);
  auto& field = *attribute.mutable_value();
  if (const auto* text = std::get_if<std::string>(&value)) {
    field.set_string_value(*text);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    field.set_int_value(*integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    field.set_double_value(*number);
  } else {
    field.set_bool_value(std::get<bool>(value));
  }
}

wire::trace::v1::Span::SpanKind KindOf(trace::SpanKind kind) {
  switch (kind) {
    case trace::SpanKind::kServer:
      return wire::trace::v1::Span::SPAN_KIND_SERVER;
    case trace::SpanKind::kClient:
      return wire::trace::v1::Span::SPAN_KIND_CLIENT;
    case trace::SpanKind::kInternal:
      break;
  }
  return wire::trace::v1::Span::SPAN_KIND_INTERNAL;
}

void SetSpan(const trace::SpanRecord& record, wire::trace::v1::Span& span) {
  span.set_trace_id(Bytes(record.context.trace_id));
  span.set_span_id(Bytes(record.context.span_id));
  const std::array<uint8_t, 8> none = {};
  if (record.parent_span_id != none) span.set_parent_span_id(Bytes(record.parent_span_id));
  span.set_name(record.name);
  span.set_kind(KindOf(record.kind));
  span.set_start_time_unix_nano(NanosOf(record.start));
  span.set_end_time_unix_nano(NanosOf(record.end));
  for (const auto& [key, value] : record.attributes) {
    SetAttribute(key, value, *span.add_attributes());
  }
  if (record.error) {
    span.mutable_status()->set_code(wire::trace::v1::Status::STATUS_CODE_ERROR);
    span.mutable_status()->set_message(*record.error);
  }
}

// What the protocol lets a client send again.
bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) || absl::IsAborted(status) || absl::IsCancelled(status);
}

}  // namespace

struct OtlpExporter::Collector {
  std::unique_ptr<TraceService::Stub> stub;
};

absl::StatusOr<std::unique_ptr<OtlpExporter>> OtlpExporter::Create(Options options) {
  MTMC_RETURN_IF_ERROR(Resolve(options.endpoint, options.security));
  return std::unique_ptr<OtlpExporter>(new OtlpExporter(std::move(options)));
}

OtlpExporter::OtlpExporter(Options options)
    : options_(std::move(options)),
      collector_(std::make_unique<Collector>(TraceService::NewStub(rpc::MakeChannel(
          // Send() has its own loop.
          options_.endpoint, {.retries_unavailable = false, .security = options_.security})))),
      thread_([this] { Work(); }) {}

OtlpExporter::~OtlpExporter() { Stop(absl::Now() + absl::Seconds(1)); }

void OtlpExporter::Take(trace::SpanRecord span) {
  {
    absl::MutexLock lock(&mu_);
    if (!is_stopping_ && queue_.size() < options_.max_queued) {
      queue_.push_back(std::move(span));
      return;
    }
  }
  options_.on_dropped(1);
}

void OtlpExporter::Stop(absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  if (!is_stopping_) {
    is_stopping_ = true;
    stop_deadline_ = deadline;
  }
  if (mu_.AwaitWithDeadline(absl::Condition(&has_ended_), deadline)) return;
  if (call_ != nullptr) call_->TryCancel();
  mu_.Await(absl::Condition(&has_ended_));
}

void OtlpExporter::Work() {
  ::pthread_setname_np(::pthread_self(), "mtmc-otlp");
  for (Batch batch = AwaitBatch(); !batch.empty(); batch = AwaitBatch()) Send(batch);
  absl::MutexLock lock(&mu_);
  has_ended_ = true;
}

OtlpExporter::Batch OtlpExporter::AwaitBatch() {
  absl::MutexLock lock(&mu_);
  const auto has_some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopping_ || !queue_.empty();
  };
  const auto is_full = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopping_ || queue_.size() >= options_.max_batch;
  };
  mu_.Await(absl::Condition(&has_some));
  mu_.AwaitWithTimeout(absl::Condition(&is_full), options_.max_delay);
  const auto count = static_cast<std::ptrdiff_t>(std::min(queue_.size(), options_.max_batch));
  Batch batch(std::make_move_iterator(queue_.begin()),
              std::make_move_iterator(queue_.begin() + count));
  queue_.erase(queue_.begin(), queue_.begin() + count);
  return batch;
}

// Until it has arrived, was refused, or the process ends.
void OtlpExporter::Send(const Batch& batch) {
  rpc::RetryRule retry({.first_pause = options_.min_backoff, .max_pause = options_.max_backoff});
  absl::Status status = Call(batch);
  const bool was_passing = IsPassing(status);
  if (was_passing) {
    base::Log(base::LogLevel::kWarning, "traces wait for their collector",
              {{"endpoint", options_.endpoint}, {"error", status}});
  }
  while (IsPassing(status) && Pause(retry.PauseAfter(status))) status = Call(batch);
  if (status.ok()) {
    if (was_passing) base::Log(base::LogLevel::kInfo, "the collector of traces answers again");
    return;
  }
  options_.on_dropped(batch.size());
  if (!IsPassing(status)) {
    base::Log(base::LogLevel::kWarning, "the collector refuses traces",
              {{"endpoint", options_.endpoint}, {"error", status}});
  }
}

absl::Status OtlpExporter::Call(const Batch& batch) {
  ExportTraceServiceRequest request;
  auto& spans = *request.add_resource_spans();
  for (const auto& [key, value] : options_.resource) {
    SetAttribute(key, value, *spans.mutable_resource()->add_attributes());
  }
  auto& scope = *spans.add_scope_spans();
  scope.mutable_scope()->set_name("mtmc");
  for (const trace::SpanRecord& record : batch) SetSpan(record, *scope.add_spans());

  grpc::ClientContext context;
  {
    absl::MutexLock lock(&mu_);
    const absl::Time deadline = std::min(absl::Now() + options_.call_timeout, stop_deadline_);
    rpc::SetDeadline(context, deadline);
    call_ = &context;
  }
  ExportTraceServiceResponse response;
  const grpc::Status ended = collector_->stub->Export(&context, request, &response);
  {
    absl::MutexLock lock(&mu_);
    call_ = nullptr;
  }
  if (!ended.ok()) return rpc::FromGrpc(ended);
  const int64_t told = response.partial_success().rejected_spans();
  const std::size_t rejected =
      std::min(static_cast<std::size_t>(std::max<int64_t>(told, 0)), batch.size());
  if (rejected > 0) options_.on_dropped(rejected);
  options_.on_sent(batch.size() - rejected);
  return absl::OkStatus();
}

bool OtlpExporter::Pause(absl::Duration wait) {
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&is_stopping_), wait);
  return !is_stopping_;
}

}  // namespace mtmc::otlp
