// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/work_metrics.h"

#include <utility>

#include "worker/daemon/stage_label.h"

namespace mtmc::worker {

void WorkMetrics::Record(const v1::LeaseResult& result) {
  if (result.has_evaluation()) {
    RecordEvaluation(result);
    return;
  }
  registry_
      .MakeCounter("mtmc_inspections_total", "Problems traced and timed, by outcome.",
                   {{"outcome", result.has_inspection()        ? "done"
                                : result.has_problem_failure() ? "problem_failed"
                                                               : "worker_failed"}})
      .Increment();
}

void WorkMetrics::ShowStage(v1::Stage stage) {
  for (const auto& [shown, value] : {std::pair{std::exchange(stage_, stage), 0}, {stage, 1}}) {
    if (shown == v1::STAGE_UNSPECIFIED) continue;
    registry_
        .MakeGauge("mtmc_evaluation_phase", "Whether an evaluation is in this stage: 1, or 0.",
                   {{"phase", StageLabel(shown)}})
        .Set(value);
  }
}

void WorkMetrics::RecordHealth(const std::string& reason) {
  registry_
      .MakeGauge("mtmc_device_quarantined", "Whether the device failed its canary: 1, or 0.", {})
      .Set(reason.empty() ? 0 : 1);
}

void WorkMetrics::RecordEvaluation(const v1::LeaseResult& result) {
  registry_
      .MakeCounter("mtmc_evaluations_total", "Candidates evaluated, by outcome.",
                   {{"outcome", OutcomeLabel(result)}})
      .Increment();
  registry_
      .MakeCounter("mtmc_device_busy_seconds_total",
                   "Seconds that the device worked for candidates and baselines.", {})
      .Increment(result.evaluation().kernel_seconds());
  for (const v1::StageSpan& span : result.evaluation().spans()) {
    registry_
        .MakeHistogram("mtmc_evaluation_phase_seconds", "Time of each stage of an evaluation.",
                       metrics::SecondsBuckets(), {{"phase", StageLabel(span.stage())}})
        .Observe(SecondsOf(span));
  }
}

}  // namespace mtmc::worker
