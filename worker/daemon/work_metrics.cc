// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/work_metrics.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace mtmc::worker {
namespace {

// `KIND_WRONG_RESULT` to `wrong_result`: a label value from a fixed set.
std::string Label(absl::string_view enumerator, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(enumerator, prefix));
}

double Seconds(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) + 1e-9 * time.nanos();
}

}  // namespace

void WorkMetrics::Record(const v1::LeaseResult& result) {
  if (result.has_evaluation()) {
    RecordEvaluation(result.evaluation());
    return;
  }
  registry_
      .MakeCounter("mtmc_inspections_total", "Problems traced and timed, by outcome.",
                   {{"outcome", result.has_inspection()        ? "done"
                                : result.has_problem_failure() ? "problem_failed"
                                                               : "worker_failed"}})
      .Increment();
}

void WorkMetrics::RecordEvaluation(const v1::Evaluation& evaluation) {
  const std::string outcome =
      evaluation.has_failure() ? Label(v1::Failure::Kind_Name(evaluation.failure().kind()), "KIND_")
                               : "correct";
  registry_
      .MakeCounter("mtmc_evaluations_total", "Candidates evaluated, by outcome.",
                   {{"outcome", outcome}})
      .Increment();
  for (const v1::StageSpan& span : evaluation.spans()) {
    registry_
        .MakeHistogram("mtmc_evaluation_phase_seconds", "Time of each stage of an evaluation.",
                       metrics::SecondsBuckets(),
                       {{"phase", Label(v1::Stage_Name(span.stage()), "STAGE_")}})
        .Observe(Seconds(span.end_time()) - Seconds(span.start_time()));
  }
}

}  // namespace mtmc::worker
