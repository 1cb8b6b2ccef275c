// SPDX-License-Identifier: Apache-2.0
#include "server/search/trial_trace.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/trace/recorded_spans.h"

namespace mtmc::search {
namespace {

using trace::RecordedSpans;
using trace::SpanKind;
using trace::SpanRecord;

v1::Candidate Recorded(int trial, v1::Candidate::State state) {
  v1::Candidate candidate;
  candidate.set_name(absl::StrCat("j/candidates/c", trial));
  candidate.set_trial(trial);
  candidate.set_state(state);
  return candidate;
}

// A job's lineage and its traces.
struct Traced {
  void Record(int trial, v1::Candidate::State state) {
    lineage.Put(Recorded(trial, state));
    trace.Settle(v1::Job(), lineage);
  }

  Lineage lineage;
  TrialTrace trace{"j"};
};

std::optional<trace::AttributeValue> Said(const SpanRecord& span, const std::string& key) {
  const auto found = std::find_if(span.attributes.begin(), span.attributes.end(),
                                  [&](const auto& each) { return each.first == key; });
  if (found == span.attributes.end()) return std::nullopt;
  return found->second;
}

TEST_CASE("A trial is one trace from its decision to the record of its end", "[search]") {
  const RecordedSpans spans;
  Traced job;
  job.Record(0, v1::Candidate::STATE_EVALUATED);
  job.trace.Begin(1);
  { const TrialTrace::Step step(job.trace, "propose", SpanKind::kInternal); }
  job.Record(1, v1::Candidate::STATE_PENDING);
  job.trace.GoOn(1);
  { const TrialTrace::Step step(job.trace, "evaluate", SpanKind::kClient); }
  CHECK(spans.All().size() == 2);
  job.Record(1, v1::Candidate::STATE_EVALUATED);

  const auto all = spans.All();
  REQUIRE(all.size() == 3);
  const SpanRecord& trial = all[2];
  CHECK(trial.name == "trial");
  CHECK(Said(trial, "mtmc.candidate") == trace::AttributeValue("j/candidates/c1"));
  CHECK(Said(trial, "mtmc.trial") == trace::AttributeValue(int64_t{1}));
  CHECK(Said(trial, "mtmc.state") == trace::AttributeValue("evaluated"));
  CHECK(all[0].parent_span_id == trial.context.span_id);
  CHECK(all[1].parent_span_id == trial.context.span_id);
}

TEST_CASE("What is asked for a step belongs to the step, else to the trial", "[search]") {
  const RecordedSpans spans;
  Traced job;
  job.trace.Begin(0);
  const base::TraceContext trial = job.trace.context();
  base::TraceContext during;
  {
    const TrialTrace::Step step(job.trace, "code", SpanKind::kInternal);
    during = job.trace.context();
  }

  CHECK(during.trace_id == trial.trace_id);
  CHECK(during.span_id != trial.span_id);
  CHECK(job.trace.context() == trial);
}

TEST_CASE("A decision to stop is no trial", "[search]") {
  const RecordedSpans spans;
  Traced job;
  job.Record(0, v1::Candidate::STATE_EVALUATED);
  job.trace.Begin(1);
  job.trace.Settle(v1::Job(), job.lineage);

  const auto all = spans.All();
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "decision");
  CHECK_FALSE(Said(all[0], "mtmc.candidate").has_value());
}

TEST_CASE("A trial that was begun before a restart gets a trace", "[search]") {
  const RecordedSpans spans;
  Traced job;
  job.trace.GoOn(3);
  for (int trial = 0; trial < 3; ++trial) {
    job.lineage.Put(Recorded(trial, v1::Candidate::STATE_EVALUATED));
  }
  job.Record(3, v1::Candidate::STATE_REJECTED);

  CHECK(Said(spans.Await("trial"), "mtmc.trial") == trace::AttributeValue(int64_t{3}));
}

TEST_CASE("A step may outlive its job", "[search]") {
  const RecordedSpans spans;
  auto job = std::make_unique<Traced>();
  job->trace.Begin(0);
  auto step = std::make_unique<TrialTrace::Step>(job->trace, "code", SpanKind::kInternal);
  job.reset();
  step.reset();

  CHECK(spans.All().size() == 2);
}

TEST_CASE("Nothing is asked in a trace while nothing is traced", "[search]") {
  Traced job;
  job.trace.Begin(0);
  const TrialTrace::Step step(job.trace, "code", SpanKind::kInternal);

  CHECK_FALSE(job.trace.context().is_valid());
}

}  // namespace
}  // namespace mtmc::search
