// SPDX-License-Identifier: Apache-2.0
#include "common/otlp/otlp_exporter.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/temp_dir.h"
#include "common/testing/certificates.h"
#include "common/testing/status_matchers.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"

namespace mtmc::otlp {
namespace {

namespace wire = opentelemetry::proto;
using testing::IsOk;
using testing::StatusIs;
using wire::collector::trace::v1::ExportTraceServiceRequest;
using wire::collector::trace::v1::ExportTraceServiceResponse;
using wire::collector::trace::v1::TraceService;

// A collector on a port of its own.
class FakeCollector final : public TraceService::Service {
 public:
  explicit FakeCollector(const std::shared_ptr<grpc::ServerCredentials>& credentials =
                             grpc::InsecureServerCredentials()) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  ~FakeCollector() override { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status Export(grpc::ServerContext* context, const ExportTraceServiceRequest* request,
                      ExportTraceServiceResponse* response) override {
    has_token.store(context->client_metadata().contains("authorization"));
    has_call.store(true);
    while (is_stuck.load() && !context->IsCancelled()) std::this_thread::yield();
    absl::MutexLock lock(&mu_);
    if (!errors.empty()) {
      const grpc::StatusCode code = errors.front();
      errors.pop_front();
      return {code, "not now"};
    }
    requests_.push_back(*request);
    response->mutable_partial_success()->set_rejected_spans(rejected);
    return grpc::Status::OK;
  }

  std::vector<ExportTraceServiceRequest> requests() {
    absl::MutexLock lock(&mu_);
    return requests_;
  }

  // Set before the first call: what the first calls are answered by.
  std::deque<grpc::StatusCode> errors;
  int64_t rejected = 0;
  // Calls do not return while it is set.
  std::atomic<bool> is_stuck = false;
  std::atomic<bool> has_call = false;
  // Of the last call.
  std::atomic<bool> has_token = false;

 private:
  int port_ = 0;
  absl::Mutex mu_;
  std::vector<ExportTraceServiceRequest> requests_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<grpc::Server> server_;
};

// An exporter with its counts.
struct Exporting {
  explicit Exporting(const std::string& endpoint, OtlpExporter::Options options = {}) {
    options.endpoint = endpoint;
    options.resource = {{"service.name", "test"}};
    options.min_backoff = absl::Milliseconds(1);
    options.on_sent = [this](std::size_t count) { sent += count; };
    options.on_dropped = [this](std::size_t count) { dropped += count; };
    auto created = OtlpExporter::Create(std::move(options));
    REQUIRE_THAT(created.status(), IsOk());
    exporter = *std::move(created);
  }

  // A span that has ended.
  void Take(const std::string& name = "span") {
    trace::SpanRecord span{.name = name, .start = absl::FromUnixSeconds(5)};
    span.end = absl::FromUnixSeconds(7);
    span.context.trace_id[0] = 1;
    span.context.span_id[0] = 2;
    span.attributes = {{"text", "a"}, {"count", 3}, {"ratio", 0.5}, {"is_it", true}};
    span.error = "bad";
    exporter->Take(std::move(span));
  }

  void Flush() { exporter->Stop(absl::Now() + absl::Minutes(2)); }

  // Until the first span was sent.
  void AwaitSent() {
    while (sent == 0) std::this_thread::yield();
  }

  std::atomic<std::size_t> sent = 0;
  std::atomic<std::size_t> dropped = 0;
  std::unique_ptr<OtlpExporter> exporter;
};

TEST_CASE("A span arrives as it was", "[otlp]") {
  FakeCollector collector;
  Exporting exporting(absl::StrCat("http://", collector.address(), "/"));
  exporting.Take("build");
  exporting.Flush();

  const auto requests = collector.requests();
  REQUIRE(requests.size() == 1);
  const auto& spans = requests[0].resource_spans(0);
  CHECK(spans.resource().attributes(0).key() == "service.name");
  CHECK(spans.resource().attributes(0).value().string_value() == "test");
  const auto& span = spans.scope_spans(0).spans(0);
  CHECK(span.name() == "build");
  CHECK(span.trace_id() == std::string("\1") + std::string(15, '\0'));
  CHECK(span.span_id() == std::string("\2") + std::string(7, '\0'));
  CHECK(span.parent_span_id().empty());
  CHECK(span.start_time_unix_nano() == 5'000'000'000);
  CHECK(span.end_time_unix_nano() == 7'000'000'000);
  CHECK(span.attributes(0).value().string_value() == "a");
  CHECK(span.attributes(1).value().int_value() == 3);
  CHECK(span.attributes(2).value().double_value() == 0.5);
  CHECK(span.attributes(3).value().bool_value());
  CHECK(span.status().code() == wire::trace::v1::Status::STATUS_CODE_ERROR);
}

TEST_CASE("A batch is sent again until a collector that fails takes it", "[otlp]") {
  FakeCollector collector;
  collector.errors = {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::RESOURCE_EXHAUSTED,
                      grpc::StatusCode::UNAVAILABLE};
  Exporting exporting(collector.address(), {.max_delay = absl::ZeroDuration()});
  exporting.Take();
  exporting.AwaitSent();

  CHECK(collector.requests().size() == 1);
  CHECK(exporting.sent == 1);
  CHECK(exporting.dropped == 0);
}

TEST_CASE("A batch that the collector refuses is dropped", "[otlp]") {
  FakeCollector collector;
  collector.errors = {grpc::StatusCode::INVALID_ARGUMENT};
  Exporting exporting(collector.address());
  exporting.Take();
  exporting.Take();
  exporting.Flush();

  CHECK(collector.requests().empty());
  CHECK(exporting.sent + exporting.dropped == 2);
  CHECK(exporting.dropped >= 1);
}

TEST_CASE("Spans that a collector takes in part are counted in part", "[otlp]") {
  FakeCollector collector;
  collector.rejected = 1;
  Exporting exporting(collector.address(), {.max_batch = 3, .max_delay = absl::Hours(1)});
  for (int i = 0; i < 3; ++i) exporting.Take();
  exporting.AwaitSent();

  CHECK(exporting.sent == 2);
  CHECK(exporting.dropped == 1);
}

TEST_CASE("What the queue cannot hold is dropped without waiting", "[otlp]") {
  FakeCollector collector;
  collector.is_stuck = true;
  Exporting exporting(collector.address(), {.max_queued = 10,
                                            .max_batch = 1,
                                            .max_delay = absl::ZeroDuration(),
                                            .call_timeout = absl::Hours(1)});
  exporting.Take();
  while (!collector.has_call.load()) std::this_thread::yield();
  for (int i = 0; i < 25; ++i) exporting.Take();
  const std::size_t dropped = exporting.dropped;
  collector.is_stuck = false;
  exporting.Flush();

  CHECK(dropped == 15);
  CHECK(exporting.sent == 11);
}

TEST_CASE("A collector that hangs holds nobody at the end", "[otlp]") {
  FakeCollector collector;
  collector.is_stuck = true;
  Exporting exporting(collector.address(),
                      {.max_delay = absl::ZeroDuration(), .call_timeout = absl::Hours(1)});
  exporting.Take();
  while (!collector.has_call.load()) std::this_thread::yield();
  exporting.Take();
  exporting.exporter->Stop(absl::Now());
  exporting.Take();

  CHECK(exporting.sent == 0);
  CHECK(exporting.dropped == 3);
}

TEST_CASE("Spans go to a collector with TLS whose authority is known, without a token", "[otlp]") {
  const base::TempDir folder = *base::TempDir::Create();
  const testing::TestAuthority authority("ours");
  const auto write = [&](const char* name, const std::string& text) {
    REQUIRE_THAT(base::WriteFileAtomically(folder.path() / name, text), IsOk());
    return (folder.path() / name).string();
  };
  const auto pair = authority.Issue("collector.example");
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs = {{pair.key, pair.certificate}};
  FakeCollector collector(grpc::SslServerCredentials(tls));
  Exporting exporting(absl::StrCat("https://", collector.address()),
                      {.security = {.ca_file = write("ca.pem", authority.certificate()),
                                    .token_file = write("token", "secret\n")}});
  exporting.Take();
  exporting.Flush();

  CHECK(exporting.sent == 1);
  CHECK_FALSE(collector.has_token);
}

TEST_CASE("An endpoint that cannot be one is refused", "[otlp]") {
  const std::string endpoint =
      GENERATE("", "collector", ":4317", "collector:", "http://collector:4317/v1/traces",
               "ftp://collector:4317");
  CAPTURE(endpoint);

  CHECK_THAT(OtlpExporter::Create({.endpoint = endpoint}).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "must be HOST:PORT"));
}

TEST_CASE("An endpoint with TLS needs its authorities", "[otlp]") {
  CHECK_THAT(OtlpExporter::Create({.endpoint = "https://collector:4317"}).status(),
             StatusIs(absl::StatusCode::kInvalidArgument, "give --tls-ca"));
}

}  // namespace
}  // namespace mtmc::otlp
