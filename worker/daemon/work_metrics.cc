// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/work_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/daemon/stage_label.h"

namespace mtmc::worker {
namespace {

constexpr char kBusy[] = "mtmc_gpu_busy_seconds_total";
constexpr char kBusyHelp[] = "Seconds that the device worked for candidates and baselines.";
constexpr char kQuarantined[] = "mtmc_gpu_quarantined";
constexpr char kQuarantinedHelp[] = "Whether the device failed its canary: 1, or 0.";
constexpr char kDropped[] = "mtmc_gpu_dropped_samples_total";
constexpr char kDroppedHelp[] =
    "Samples of measurements that were dropped: the clock was too low (throttled) or another than "
    "for the rest (clock_changed), or the host was late (late).";
constexpr char kEvaluations[] = "mtmc_worker_evaluations_total";
constexpr char kEvaluationsHelp[] =
    "Evaluations that this worker has done, by outcome, whatever became of them.";
constexpr char kInspections[] = "mtmc_worker_inspections_total";
constexpr char kInspectionsHelp[] = "Problems that this worker has traced and timed, by outcome.";

}  // namespace

void WorkMetrics::ShowDevice(const v1::DeviceFacts& device) {
  {
    absl::MutexLock lock(&mu_);
    product_ = device.product();
  }
  registry_.MakeCounter(kBusy, kBusyHelp, LabelsWith("", ""));
  registry_.MakeGauge(kQuarantined, kQuarantinedHelp, LabelsWith("", "")).Set(0);
  for (const char* reason : {"throttled", "clock_changed", "late"}) {
    registry_.MakeCounter(kDropped, kDroppedHelp, LabelsWith("reason", reason));
  }
}

metrics::Labels WorkMetrics::LabelsWith(const std::string& name, const std::string& value) const {
  absl::MutexLock lock(&mu_);
  metrics::Labels labels = {{"gpu_product", product_}};
  if (!name.empty()) labels[name] = value;
  return labels;
}

void WorkMetrics::Record(const v1::LeaseResult& result) {
  if (result.has_evaluation()) {
    RecordEvaluation(result);
    return;
  }
  const bool is_inspection = result.has_inspection() || result.has_problem_failure();
  registry_
      .MakeCounter(is_inspection ? kInspections : kEvaluations,
                   is_inspection ? kInspectionsHelp : kEvaluationsHelp,
                   LabelsWith("outcome", OutcomeLabel(result)))
      .Increment();
}

void WorkMetrics::ShowStage(v1::Stage stage) {
  for (const auto& [shown, value] : {std::pair{std::exchange(stage_, stage), 0}, {stage, 1}}) {
    if (shown == v1::STAGE_UNSPECIFIED) continue;
    registry_
        .MakeGauge("mtmc_worker_phase", "Whether the work in hand is in this stage: 1, or 0.",
                   {{"phase", StageLabel(shown)}})
        .Set(value);
  }
}

void WorkMetrics::RecordHealth(const std::string& reason) {
  registry_.MakeGauge(kQuarantined, kQuarantinedHelp, LabelsWith("", ""))
      .Set(reason.empty() ? 0 : 1);
  absl::MutexLock lock(&mu_);
  quarantine_reason_ = reason;
}

absl::Status WorkMetrics::health() const {
  absl::MutexLock lock(&mu_);
  if (quarantine_reason_.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("quarantined: ", quarantine_reason_));
}

void WorkMetrics::RecordEvaluation(const v1::LeaseResult& result) {
  registry_.MakeCounter(kEvaluations, kEvaluationsHelp, LabelsWith("outcome", OutcomeLabel(result)))
      .Increment();
  const v1::Evaluation& evaluation = result.evaluation();
  registry_.MakeCounter(kBusy, kBusyHelp, LabelsWith("", ""))
      .Increment(evaluation.kernel_seconds());
  CountDropped(evaluation.measurement());
  for (const v1::Comparison& comparison : evaluation.comparisons()) {
    CountDropped(comparison.baseline_measurement());
  }
}

void WorkMetrics::CountDropped(const v1::Measurement& measurement) {
  const auto count = [&](const char* reason, int samples) {
    registry_.MakeCounter(kDropped, kDroppedHelp, LabelsWith("reason", reason)).Increment(samples);
  };
  count("throttled", measurement.throttled_samples());
  count("clock_changed", measurement.shifted_samples());
  count("late", measurement.late_samples());
}

}  // namespace mtmc::worker
