// SPDX-License-Identifier: Apache-2.0
#include "server/search/known_step.h"

#include <catch2/catch.hpp>
#include <string>

#include "server/search/timed_candidate.h"

namespace mtmc::search {
namespace {

v1::Candidate Judged(int trial, const std::string& program, int parent = 0) {
  v1::Candidate candidate = TimedCandidate(trial, program, {{"k", 1}}, parent);
  candidate.set_coder(kBuiltinCoder);
  return candidate;
}

v1::Candidate Known(int trial, const std::string& program) {
  v1::Candidate candidate = Judged(trial, program);
  candidate.mutable_evaluation()->set_is_cached(true);
  return candidate;
}

Lineage LineageOf(const std::vector<v1::Candidate>& candidates) {
  Lineage lineage;
  for (const v1::Candidate& candidate : candidates) lineage.Put(candidate);
  return lineage;
}

TEST_CASE("A step back to a judged program is known and costs no trial", "[search]") {
  const Lineage lineage = LineageOf({Judged(0, "a"), Judged(1, "b"), Known(2, "a"), Known(3, "b")});

  CHECK_FALSE(IsKnownStep(lineage, 1));
  CHECK(IsKnownStep(lineage, 2));
  CHECK(OriginalOf(lineage, 2) == 0);
  CHECK(OriginalOf(lineage, 3) == 1);
  CHECK(TrialsAfter(lineage, 0) == 1);
  CHECK(TrialsAfter(lineage, 1) == 0);
}

TEST_CASE("What another job has judged is a trial of this one", "[search]") {
  const Lineage lineage = LineageOf({Judged(0, "a"), Known(1, "b"), Known(2, "b")});

  CHECK_FALSE(IsKnownStep(lineage, 1));
  CHECK(IsKnownStep(lineage, 2));
}

TEST_CASE("A language model that repeats a program has spent its trial", "[search]") {
  v1::Candidate repeated = Known(1, "a");
  repeated.set_coder("llm");

  CHECK(TrialsAfter(LineageOf({Judged(0, "a"), repeated}), 0) == 1);
}

TEST_CASE("What may be the host's fault judges no program", "[search]") {
  const auto kind = GENERATE(v1::Failure::KIND_CRASH, v1::Failure::KIND_TIMEOUT,
                             v1::Failure::KIND_OUT_OF_MEMORY, v1::Failure::KIND_REFERENCE);
  v1::Candidate crashed = Judged(1, "b");
  crashed.mutable_evaluation()->mutable_failure()->set_kind(kind);

  const Lineage lineage = LineageOf({Judged(0, "a"), crashed});

  CHECK_FALSE(FindJudged(lineage, "b"));
  CHECK(FindJudged(lineage, "a") == 0);
}

TEST_CASE("A wrong program is judged, one without an evaluation is not", "[search]") {
  v1::Candidate wrong = Judged(0, "a");
  wrong.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_WRONG_RESULT);
  v1::Candidate pending = Judged(1, "b");
  pending.set_state(v1::Candidate::STATE_PENDING);

  CHECK(FindJudged(LineageOf({wrong, pending}), "a") == 0);
  CHECK_FALSE(FindJudged(LineageOf({wrong, pending}), "b"));
}

TEST_CASE("An old text under a new schedule is known but its own place to go on", "[search]") {
  v1::Candidate other = Known(1, "a");
  other.set_schedule("b");
  const Lineage lineage = LineageOf({Judged(0, "a"), other});

  CHECK(IsKnownStep(lineage, 1));
  CHECK(OriginalOf(lineage, 1) == 1);
}

}  // namespace
}  // namespace mtmc::search
