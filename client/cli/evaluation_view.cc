// SPDX-License-Identifier: Apache-2.0
#include "client/cli/evaluation_view.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/output.h"
#include "common/base/enum_word.h"

namespace mtmc::client {
namespace {

void PrintPrecision(const v1::Evaluation& evaluation, std::ostream& out) {
  for (const v1::OutputError& error : evaluation.errors()) {
    out << "  output " << error.output() << ": error "
        << absl::StrFormat("%.3g of %.3g allowed", error.tolerance_needed(),
                           error.tolerance_allowed());
    if (error.ratio_needed() > 0) {
      out << absl::StrFormat("; %s: root mean square %.3g of %.3g allowed", error.part(),
                             error.ratio_needed(), error.ratio_allowed());
    }
    out << " (" << error.workload() << ")\n";
  }
  if (evaluation.verdict() != v1::Evaluation::VERDICT_CORRECT) return;
  std::vector<std::string> names;
  for (const int precision : evaluation.satisfied()) {
    names.push_back(
        base::EnumWord(v1::Precision_Name(static_cast<v1::Precision>(precision)), "PRECISION_"));
  }
  out << absl::StrFormat("  precise enough for %s; KernelBench's own comparison %s\n",
                         absl::StrJoin(names, ", "),
                         evaluation.kernelbench_allclose() ? "holds" : "does not hold");
}

void PrintChecks(const v1::VerificationSummary& checks, std::ostream& out) {
  if (!checks.workloads().empty()) {
    out << absl::StrFormat("  compared on %d workload%s%s; the oracle is %s\n",
                           checks.workloads_size(), checks.workloads_size() == 1 ? "" : "s",
                           checks.is_thorough() ? ", all that are asked of a winner" : "",
                           checks.oracle());
  }
  if (!checks.nonfinite().empty()) out << "  not judged: " << checks.nonfinite() << "\n";
  if (checks.timed_executions() > 0) {
    out << absl::StrFormat("  %d executions timed, %d of them checked, %d on inputs never seen\n",
                           checks.timed_executions(), checks.checked_executions(),
                           checks.fresh_executions());
  }
  if (checks.verified_timed_sets() > 0) {
    out << absl::StrFormat("  %d timed sets of inputs compared once more after timing\n",
                           checks.verified_timed_sets());
  }
  if (checks.fresh_slowdown() > 0) {
    out << absl::StrFormat(
        "  it takes %.2f times as long on inputs never seen, so its times were multiplied by "
        "that\n",
        checks.fresh_slowdown());
  }
}

void PrintIsolation(const v1::Evaluation& evaluation, std::ostream& out) {
  if (evaluation.isolation_level() == v1::ISOLATION_UNSPECIFIED) return;
  out << absl::StrFormat(
      "  isolation: %s (%d mechanisms)\n",
      base::EnumWord(v1::Isolation_Name(evaluation.isolation_level()), "ISOLATION_"),
      evaluation.isolation_size());
}

void PrintComparisons(const v1::Evaluation& evaluation, std::ostream& out) {
  if (evaluation.comparisons().empty()) return;
  Table table(ComparisonHeaders());
  for (const v1::Comparison& comparison : evaluation.comparisons()) {
    table.AddRow(ComparisonCells(comparison, evaluation.measurement()));
  }
  if (evaluation.has_confirmed()) {
    std::vector<std::string> cells =
        ComparisonCells(evaluation.confirmed(), evaluation.confirmation());
    absl::StrAppend(&cells.front(), ", second session");
    table.AddRow(std::move(cells));
  }
  out << "\n";
  table.Print(out);
  if (evaluation.skipped_confirmation()) {
    out << "not the fastest of its job: no second session, and fewer workloads\n";
  }
}

}  // namespace

std::string BaselineName(v1::Baseline baseline) {
  switch (baseline) {
    case v1::BASELINE_EAGER:
      return "eager";
    case v1::BASELINE_EAGER_TF32:
      return "eager TF32";
    case v1::BASELINE_COMPILE:
      return "torch.compile";
    case v1::BASELINE_COMPILE_MAX_AUTOTUNE:
      return "torch.compile max-autotune";
    case v1::BASELINE_EAGER_AUTOCAST:
      return "eager autocast";
    default:
      return "baseline";
  }
}

std::vector<std::string> ComparisonHeaders() {
  return {"baseline", ">baseline time", ">ours", ">speedup", "99 % interval", "verdict"};
}

std::vector<std::string> ComparisonCells(const v1::Comparison& comparison,
                                         const v1::Measurement& measurement) {
  const std::string outcome = absl::AsciiStrToUpper(
      base::EnumWord(v1::Comparison::Outcome_Name(comparison.outcome()), "OUTCOME_"));
  return {BaselineName(comparison.baseline()),
          FormatSeconds(comparison.baseline_measurement().median_seconds()),
          FormatSeconds(measurement.median_seconds()),
          FormatSpeedup(comparison.speedup()),
          absl::StrCat(FormatSpeedup(comparison.speedup_low()), " to ",
                       FormatSpeedup(comparison.speedup_high())),
          outcome == "FASTER" ? Green(outcome) : outcome};
}

void PrintEvaluation(const v1::Evaluation& evaluation, std::ostream& out) {
  if (evaluation.is_cached()) out << "  answered from an earlier evaluation of the same program\n";
  if (evaluation.has_failure()) {
    out << "  " << Red(evaluation.failure().message()) << "\n";
    if (!evaluation.failure().diagnostics().empty()) {
      out << evaluation.failure().diagnostics() << "\n";
    }
  }
  PrintPrecision(evaluation, out);
  PrintChecks(evaluation.checks(), out);
  PrintIsolation(evaluation, out);
  PrintComparisons(evaluation, out);
}

}  // namespace mtmc::client
