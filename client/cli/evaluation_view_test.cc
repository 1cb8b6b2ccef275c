// SPDX-License-Identifier: Apache-2.0
#include "client/cli/evaluation_view.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace mtmc::client {
namespace {

using Catch::Contains;

std::string Drawn(const v1::Evaluation& evaluation) {
  std::ostringstream out;
  PrintEvaluation(evaluation, out);
  return out.str();
}

void SetComparison(v1::Comparison& comparison, double speedup) {
  comparison.set_baseline(v1::BASELINE_EAGER);
  comparison.set_outcome(v1::Comparison::OUTCOME_FASTER);
  comparison.set_speedup(speedup);
  comparison.set_speedup_low(speedup - 0.02);
  comparison.set_speedup_high(speedup + 0.02);
  comparison.mutable_baseline_measurement()->set_median_seconds(2e-3);
}

v1::Evaluation Faster() {
  v1::Evaluation evaluation;
  evaluation.set_verdict(v1::Evaluation::VERDICT_CORRECT);
  evaluation.mutable_measurement()->set_median_seconds(1e-3);
  SetComparison(*evaluation.add_comparisons(), 2);
  return evaluation;
}

TEST_CASE("An evaluation that has not come far has nothing to tell", "[cli]") {
  CHECK(Drawn({}).empty());
}

TEST_CASE("A failure is told with all that was said of it", "[cli]") {
  v1::Evaluation evaluation;
  evaluation.mutable_failure()->set_message("the compiler refused the source");
  evaluation.mutable_failure()->set_diagnostics("line 3: error");

  CHECK(Drawn(evaluation) == "  the compiler refused the source\nline 3: error\n");
}

TEST_CASE("An answer from the cache is said to be one", "[cli]") {
  v1::Evaluation evaluation;
  evaluation.set_is_cached(true);

  CHECK_THAT(Drawn(evaluation), Contains("an earlier evaluation of the same program"));
}

TEST_CASE("The precision classes that hold are told apart from KernelBench's comparison", "[cli]") {
  v1::Evaluation evaluation;
  evaluation.set_verdict(v1::Evaluation::VERDICT_CORRECT);
  evaluation.add_satisfied(v1::PRECISION_TF32);
  evaluation.add_satisfied(v1::PRECISION_HALF);
  v1::OutputError& error = *evaluation.add_errors();
  error.set_output("y");
  error.set_tolerance_needed(2e-4);
  error.set_tolerance_allowed(1e-3);
  error.set_workload("public");

  CHECK(Drawn(evaluation) ==
        "  output y: error 0.0002 of 0.001 allowed (public)\n"
        "  precise enough for tf32, half; KernelBench's own comparison does not hold\n");
}

TEST_CASE("A wrong program has its errors told and no precision", "[cli]") {
  v1::Evaluation evaluation;
  evaluation.set_verdict(v1::Evaluation::VERDICT_WRONG);
  evaluation.add_errors()->set_output("y");

  CHECK_THAT(Drawn(evaluation), Contains("output y") && !Contains("precise"));
}

TEST_CASE("Checks are told by how far they reach", "[cli]") {
  v1::Evaluation evaluation;
  v1::VerificationSummary& checks = *evaluation.mutable_checks();
  checks.add_workloads();
  checks.add_workloads();
  checks.set_oracle("fp64");
  checks.set_timed_executions(2040);
  checks.set_checked_executions(31);
  checks.set_fresh_executions(12);

  CHECK(Drawn(evaluation) ==
        "  compared on 2 workloads; the oracle is fp64\n"
        "  2040 executions timed, 31 of them checked, 12 on inputs never seen\n");
}

TEST_CASE("A program that is slower on inputs never seen is said to be", "[cli]") {
  v1::Evaluation evaluation;
  evaluation.mutable_checks()->set_fresh_slowdown(1.2);

  CHECK(Drawn(evaluation) ==
        "  it takes 1.20 times as long on inputs never seen, so its times were multiplied by "
        "that\n");
}

TEST_CASE("The level of isolation that was in force is named", "[cli]") {
  v1::Evaluation evaluation;
  evaluation.set_isolation_level(v1::ISOLATION_CONFINED);
  evaluation.add_isolation("network");
  evaluation.add_isolation("seccomp");

  CHECK(Drawn(evaluation) == "  isolation: confined (2 mechanisms)\n");
}

TEST_CASE("Every comparison comes with its interval", "[cli]") {
  const std::string drawn = Drawn(Faster());

  CHECK_THAT(drawn, Contains("eager") && Contains("1.98x to 2.02x") && Contains("FASTER"));
  CHECK_THAT(drawn, !Contains("second session"));
}

TEST_CASE("A second session stands below the first, and is missed where it was left out", "[cli]") {
  v1::Evaluation winner = Faster();
  SetComparison(*winner.mutable_confirmed(), 1.9);
  winner.mutable_confirmation()->set_median_seconds(1.1e-3);
  v1::Evaluation other = Faster();
  other.set_skipped_confirmation(true);

  CHECK_THAT(Drawn(winner), Contains("eager, second session") && Contains("1.88x to 1.92x"));
  CHECK_THAT(Drawn(other),
             Contains("not the fastest of its job: no second session, and fewer workloads"));
}

}  // namespace
}  // namespace mtmc::client
