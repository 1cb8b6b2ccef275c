// SPDX-License-Identifier: Apache-2.0
#include "common/rpc/traced_call.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/error.h"
#include "common/rpc/server.h"
#include "common/rpc/test_service.h"
#include "common/testing/status_matchers.h"
#include "common/trace/recorded_spans.h"

namespace mtmc::rpc {
namespace {

using testing::IsOk;
using trace::RecordedSpans;
using trace::Span;
using trace::SpanKind;
using trace::SpanRecord;

constexpr char kFind[] = "mtmc.v1.ArtifactService/FindMissingArtifacts";

// A server whose method remembers in which trace it was called.
struct Served {
  Served() {
    service.find = [this](const auto&,
                          const Call&) -> absl::StatusOr<v1::FindMissingArtifactsResponse> {
      seen.push_back(base::CurrentTrace());
      if (!answer.ok()) return answer;
      return v1::FindMissingArtifactsResponse();
    };
    auto created = RpcServer::Create({.services = {&service}});
    REQUIRE_THAT(created.status(), IsOk());
    server = *std::move(created);
  }

  absl::Status Find() {
    auto stub = v1::ArtifactService::NewStub(MakeChannel(server->address()));
    grpc::ClientContext context;
    SetDeadline(context, absl::Now() + absl::Minutes(2));
    v1::FindMissingArtifactsResponse response;
    return FromGrpc(stub->FindMissingArtifacts(&context, {}, &response));
  }

  // Ends the server, and with it the spans of its calls.
  void End() { server.reset(); }

  // Written before the answer, read after it.
  std::vector<base::TraceContext> seen;
  absl::Status answer;
  TestService service;
  std::unique_ptr<RpcServer> server;
};

SpanRecord Find(const std::vector<SpanRecord>& spans, SpanKind kind) {
  for (const SpanRecord& span : spans) {
    if (span.name == kFind && span.kind == kind) return span;
  }
  return {};
}

TEST_CASE("A call in a trace makes a span on either side and works in the inner one", "[rpc]") {
  const RecordedSpans spans;
  Served served;
  const Span root = Span::StartTrace("trial");
  {
    const base::TraceScope scope(root.context());
    CHECK_THAT(served.Find(), IsOk());
  }
  served.End();

  const SpanRecord client = Find(spans.All(), SpanKind::kClient);
  const SpanRecord server = Find(spans.All(), SpanKind::kServer);
  const std::vector<std::pair<std::string, trace::AttributeValue>> attributes = {
      {"rpc.system", "grpc"},
      {"rpc.service", "mtmc.v1.ArtifactService"},
      {"rpc.method", "FindMissingArtifacts"},
      {"rpc.grpc.status_code", int64_t{0}}};
  CHECK(client.attributes == attributes);
  CHECK(server.attributes == attributes);
  CHECK(client.parent_span_id == root.context().span_id);
  CHECK(server.parent_span_id == client.context.span_id);
  REQUIRE(served.seen.size() == 1);
  CHECK(served.seen[0] == server.context);
  CHECK(server.context.trace_id == root.context().trace_id);
}

TEST_CASE("The span of a client says why its call failed, that of a server where it is at fault",
          "[rpc]") {
  const auto [answer, server_error] = GENERATE(table<absl::Status, std::optional<std::string>>({
      {absl::NotFoundError("nothing of it"), std::nullopt},
      {MakeError(absl::StatusCode::kInternal, "BROKEN", "all of it"), "INTERNAL: BROKEN"},
  }));
  const RecordedSpans spans;
  Served served;
  served.answer = answer;
  const Span root = Span::StartTrace("trial");
  {
    const base::TraceScope scope(root.context());
    CHECK_FALSE(served.Find().ok());
  }
  served.End();

  CHECK(Find(spans.All(), SpanKind::kClient).error == server_error.value_or("NOT_FOUND"));
  CHECK(Find(spans.All(), SpanKind::kServer).error == server_error);
}

TEST_CASE("A call outside of traces makes no span", "[rpc]") {
  const RecordedSpans spans;
  Served served;
  CHECK_THAT(served.Find(), IsOk());
  served.End();

  CHECK(spans.All().empty());
  REQUIRE(served.seen.size() == 1);
  CHECK_FALSE(served.seen[0].is_valid());
}

TEST_CASE("A header of somebody else is followed or ignored, never refused", "[rpc]") {
  const auto [header, is_followed] = GENERATE(table<const char*, bool>({
      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true},
      {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", false},
      {"nonsense", false},
      {"", false},
  }));
  CAPTURE(header);
  const RecordedSpans spans;
  Served served;
  auto stub = v1::ArtifactService::NewStub(MakeChannel(served.server->address()));
  grpc::ClientContext context;
  context.AddMetadata("traceparent", header);
  v1::FindMissingArtifactsResponse response;
  CHECK(stub->FindMissingArtifacts(&context, {}, &response).ok());
  served.End();

  CHECK(spans.All().size() == (is_followed ? 1 : 0));
}

}  // namespace
}  // namespace mtmc::rpc
