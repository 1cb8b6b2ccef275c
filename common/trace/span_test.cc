// SPDX-License-Identifier: Apache-2.0
#include "common/trace/span.h"

#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <utility>

#include "common/trace/recorded_spans.h"

namespace mtmc::trace {
namespace {

using base::TraceContext;
using base::TraceScope;

TEST_CASE("Spans in scopes make a tree", "[trace]") {
  const RecordedSpans spans;
  {
    const Span root = Span::StartTrace("trial");
    const TraceScope scope(root.context());
    {
      const Span child = Span::Start("build");
      const TraceScope inner(child.context());
      const Span grandchild = Span::Start("compile");
    }
    const Span sibling = Span::Start("verify");
  }

  const auto all = spans.All();
  REQUIRE(all.size() == 4);
  const SpanRecord& compile = all[0];
  const SpanRecord& build = all[1];
  const SpanRecord& verify = all[2];
  const SpanRecord& trial = all[3];
  CHECK(trial.name == "trial");
  CHECK(trial.parent_span_id == std::array<uint8_t, 8>());
  CHECK(build.parent_span_id == trial.context.span_id);
  CHECK(verify.parent_span_id == trial.context.span_id);
  CHECK(compile.parent_span_id == build.context.span_id);
  for (const SpanRecord& span : all) CHECK(span.context.trace_id == trial.context.trace_id);
}

TEST_CASE("A span tells what was set and why it failed", "[trace]") {
  const RecordedSpans spans;
  Span span = Span::StartTrace("trial");
  span.Set("candidate", "c1");
  span.Set("variants", 3);
  span.Fail("too slow");
  span.End();
  span.End();

  const auto all = spans.All();
  REQUIRE(all.size() == 1);
  REQUIRE(all[0].attributes.size() == 2);
  CHECK(all[0].attributes[0] == std::pair<std::string, AttributeValue>("candidate", "c1"));
  CHECK(all[0].attributes[1] == std::pair<std::string, AttributeValue>("variants", 3));
  CHECK(all[0].error == "too slow");
  CHECK(all[0].start <= all[0].end);
}

TEST_CASE("Nothing is made while nothing is traced", "[trace]") {
  TraceContext parent;
  {
    const RecordedSpans spans;
    parent = Span::StartTrace("trial").context();
  }
  const Span child = Span::Start("build", {.parent = parent});
  const Span root = Span::StartTrace("trial");

  CHECK_FALSE(child.is_recording());
  CHECK_FALSE(root.is_recording());
  CHECK_FALSE(root.context().is_valid());
}

TEST_CASE("A span without a sampled parent is inert", "[trace]") {
  const RecordedSpans spans;
  TraceContext unsampled = Span::StartTrace("trial").context();
  unsampled.is_sampled = false;

  CHECK_FALSE(Span::Start("build").is_recording());
  CHECK_FALSE(Span::Start("build", {.parent = unsampled}).is_recording());
}

TEST_CASE("Each trace has an id of its own, and each span", "[trace]") {
  const RecordedSpans spans;
  const Span first = Span::StartTrace("trial");
  const Span second = Span::StartTrace("trial");

  CHECK(first.context().is_valid());
  CHECK(first.context().trace_id != second.context().trace_id);
  CHECK(first.context().span_id != second.context().span_id);
}

TEST_CASE("A span is called by its last name", "[trace]") {
  const RecordedSpans spans;
  Span span = Span::StartTrace("decision");
  span.Rename("trial");
  span.End();

  CHECK(spans.Await("trial").name == "trial");
}

TEST_CASE("A span that outlives its tracing goes to the sink it began with", "[trace]") {
  auto spans = std::make_unique<RecordedSpans>();
  Span span = Span::StartTrace("trial");
  spans.reset();
  span.End();

  CHECK_FALSE(span.is_recording());
}

TEST_CASE("A span may end on another thread", "[trace]") {
  const RecordedSpans spans;
  Span span = Span::StartTrace("trial");
  std::jthread([moved = std::move(span)]() mutable { moved.End(); }).join();

  CHECK(spans.Await("trial").name == "trial");
}

}  // namespace
}  // namespace mtmc::trace
