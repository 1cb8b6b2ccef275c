// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/lease_span.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "common/trace/recorded_spans.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "worker/daemon/call_log.h"
#include "worker/verify/reference_queue.h"

namespace mtmc::worker {
namespace {

using trace::SpanRecord;

v1::Lease LeaseIn(const base::TraceContext& trace) {
  v1::Lease lease;
  lease.set_job("projects/default/jobs/j");
  lease.set_candidate("projects/default/jobs/j/candidates/c2");
  lease.set_trace_parent(base::FormatTraceParent(trace));
  return lease;
}

v1::Worker TheWorker() {
  v1::Worker worker;
  worker.set_name("workers/w");
  return worker;
}

std::string TextOf(const SpanRecord& span, const std::string& key) {
  const auto found = std::find_if(span.attributes.begin(), span.attributes.end(),
                                  [&](const auto& each) { return each.first == key; });
  return found == span.attributes.end() ? "" : std::get<std::string>(found->second);
}

// Answers everything, or dies of it.
struct FakeReference final : ReferenceParty {
  Reply<pipe::v1::ReferenceResponse> Call(const pipe::v1::ReferenceRequest&,
                                          absl::Duration) override {
    return {.ending = ending, .response = {}, .detail = "what the user's file says"};
  }

  Reply<pipe::v1::ReferenceResponse>::Ending ending =
      Reply<pipe::v1::ReferenceResponse>::Ending::kAnswered;
};

TEST_CASE("The span of a lease is in the trace that the lease names, and says what came of it",
          "[worker]") {
  const trace::RecordedSpans spans;
  const trace::Span root = trace::Span::StartTrace("evaluate");
  {
    LeaseSpan span("evaluation", trace::SpanKind::kServer, LeaseIn(root.context()), TheWorker());
    v1::LeaseResult result;
    result.mutable_evaluation()->set_verdict(v1::Evaluation::VERDICT_WRONG);
    result.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_WRONG_RESULT);
    span.Conclude(result);
  }

  const SpanRecord span = spans.Await("evaluation");
  CHECK(span.parent_span_id == root.context().span_id);
  CHECK(span.context.trace_id == root.context().trace_id);
  CHECK(TextOf(span, "mtmc.job") == "projects/default/jobs/j");
  CHECK(TextOf(span, "mtmc.worker") == "workers/w");
  CHECK(TextOf(span, "mtmc.outcome") == "wrong_result");
  CHECK(TextOf(span, "mtmc.verdict") == "wrong");
  CHECK_FALSE(span.error.has_value());
}

TEST_CASE("A lease whose trace cannot be read has no span", "[worker]") {
  const trace::RecordedSpans spans;
  v1::Lease lease = LeaseIn({});
  lease.set_trace_parent("nonsense");
  const LeaseSpan span("evaluation", trace::SpanKind::kServer, lease, TheWorker());

  CHECK_FALSE(base::CurrentTrace().is_valid());
}

TEST_CASE("A call of a child is a span of the lease, also from the queue's thread", "[worker]") {
  const trace::RecordedSpans spans;
  const trace::Span root = trace::Span::StartTrace("evaluate");
  FakeReference reference;
  CallLog log;
  LoggedParty logged(static_cast<ReferenceParty&>(reference), "reference", log);
  pipe::v1::ReferenceRequest request;
  request.mutable_load();
  {
    const base::TraceScope scope(root.context());
    ReferenceQueue queue(logged);
    queue.Call(request, absl::InfiniteFuture()).get();
    reference.ending = Reply<pipe::v1::ReferenceResponse>::Ending::kDied;
    logged.Call(request, absl::Minutes(1));
  }

  const auto all = spans.All();
  REQUIRE(all.size() == 2);
  for (const SpanRecord& span : all) {
    CHECK(span.name == "reference.load");
    CHECK(span.parent_span_id == root.context().span_id);
  }
  CHECK_FALSE(all[0].error.has_value());
  CHECK(all[1].error == "died");
}

}  // namespace
}  // namespace mtmc::worker
