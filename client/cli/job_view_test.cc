// SPDX-License-Identifier: Apache-2.0
#include "client/cli/job_view.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace mtmc::client {
namespace {

v1::JobEvent Finished(int64_t sequence, const std::string& name, const std::string& parent,
                      const std::string& action) {
  v1::JobEvent event;
  event.set_sequence(sequence);
  v1::Candidate& candidate = *event.mutable_candidate();
  candidate.set_name(name);
  candidate.set_state(v1::Candidate::STATE_EVALUATED);
  if (!parent.empty()) candidate.add_parents(parent);
  if (!action.empty()) candidate.mutable_action()->set_text(action);
  auto& comparison = *candidate.mutable_evaluation()->add_comparisons();
  comparison.set_outcome(v1::Comparison::OUTCOME_FASTER);
  comparison.set_speedup(2);
  candidate.mutable_evaluation()->mutable_measurement()->set_median_seconds(1e-3);
  return event;
}

v1::JobEvent Ended(int64_t sequence, const std::string& best) {
  v1::JobEvent event;
  event.set_sequence(sequence);
  event.mutable_job()->set_state(v1::Job::STATE_SUCCEEDED);
  event.mutable_job()->set_best_candidate(best);
  return event;
}

TEST_CASE("JobView prints each finished trial once", "[cli]") {
  std::ostringstream out;
  JobView view(out, /*is_live=*/false);

  view.Observe(Finished(1, "j/c0", "", ""));
  view.Observe(Finished(1, "j/c0", "", ""));
  view.Observe(Finished(2, "j/c0", "", ""));

  const std::string text = out.str();
  CHECK(text.find("start") != std::string::npos);
  CHECK(text.find("start") == text.rfind("start"));
  CHECK(view.cursor() == 2);
}

TEST_CASE("JobView tells what a later confirmation comes to", "[cli]") {
  std::ostringstream out;
  JobView view(out, /*is_live=*/false);
  view.Observe(Finished(1, "j/c0", "", ""));

  SECTION("agreement") {
    view.Observe(Finished(2, "j/c0", "", ""));
    CHECK(out.str().find("trial 0 confirmed: faster") != std::string::npos);
  }
  SECTION("a failure") {
    v1::JobEvent refuted = Finished(2, "j/c0", "", "");
    auto& failure = *refuted.mutable_candidate()->mutable_evaluation()->mutable_failure();
    failure.set_kind(v1::Failure::KIND_WRONG_RESULT);
    failure.set_message("output y is off");
    view.Observe(refuted);
    CHECK(out.str().find("asked all that winners are") != std::string::npos);
    CHECK(out.str().find("output y is off") != std::string::npos);
  }
}

TEST_CASE("JobView says which candidate a known step leads to", "[cli]") {
  std::ostringstream out;
  JobView view(out, /*is_live=*/false);
  for (int trial = 0; trial < 3; ++trial) {
    v1::JobEvent event = Finished(trial + 1, "j/c" + std::to_string(trial), "", "step");
    event.mutable_candidate()->set_trial(trial);
    event.mutable_candidate()->mutable_program()->set_sha256(trial == 1 ? "b" : "a");
    event.mutable_candidate()->mutable_evaluation()->set_is_cached(trial > 0);
    view.Observe(event);
  }

  const std::string text = out.str();
  // Another job has judged `b`.
  CHECK(text.find("as c1") == std::string::npos);
  CHECK(text.find("as c0") != std::string::npos);
  CHECK(text.find("as c0") == text.rfind("as c0"));
}

TEST_CASE("JobView follows the winner back to the start", "[cli]") {
  std::ostringstream out;
  JobView view(out, /*is_live=*/false);
  view.Observe(Finished(1, "j/c0", "", ""));
  view.Observe(Finished(2, "j/c1", "j/c0", "fuse a into b"));
  view.Observe(Finished(3, "j/c2", "j/c0", "tune c"));
  view.Observe(Ended(4, "j/c1"));

  const auto lineage = view.WinningLineage();

  REQUIRE(lineage.size() == 2);
  CHECK(lineage[0].name() == "j/c0");
  CHECK(lineage[1].action().text() == "fuse a into b");
  CHECK(view.has_ended());
}

TEST_CASE("JobView tells why a job failed", "[cli]") {
  std::ostringstream out;
  JobView view(out, /*is_live=*/false);
  v1::JobEvent event;
  event.set_sequence(1);
  event.mutable_job()->set_state(v1::Job::STATE_FAILED);
  event.mutable_job()->mutable_failure()->set_reason("NO_MODEL");
  event.mutable_job()->mutable_failure()->set_message("the file has no class Model");

  view.Observe(event);
  view.PrintSummary();

  CHECK(out.str().find("the file has no class Model [NO_MODEL]") != std::string::npos);
}

TEST_CASE("JobView tells all that was found of a program that the user wrote", "[cli]") {
  std::ostringstream out;
  JobView view(out, /*is_live=*/false);
  v1::JobEvent candidate = Finished(1, "j/c0", "", "");
  v1::Failure& failure = *candidate.mutable_candidate()->mutable_evaluation()->mutable_failure();
  failure.set_message("the compiler refused the source");
  failure.set_diagnostics("line 3: error");
  v1::JobEvent ended = Ended(2, "");
  ended.mutable_job()->set_state(v1::Job::STATE_FAILED);
  ended.mutable_job()->mutable_search()->mutable_evaluate();
  ended.mutable_job()->mutable_failure()->set_message("no candidate is correct");

  view.Observe(candidate);
  view.Observe(ended);
  view.PrintSummary();

  CHECK(out.str().find("the compiler refused the source\nline 3: error") != std::string::npos);
}

TEST_CASE("OutcomeOf names a failure by its kind", "[cli]") {
  v1::Candidate candidate;
  candidate.set_state(v1::Candidate::STATE_EVALUATED);
  candidate.mutable_evaluation()->mutable_failure()->set_kind(v1::Failure::KIND_OUT_OF_BOUNDS);

  CHECK(OutcomeOf(candidate) == "out of bounds");
}

}  // namespace
}  // namespace mtmc::client
