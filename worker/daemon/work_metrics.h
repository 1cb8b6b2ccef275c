// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/metrics/metrics.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::worker {

// What a worker counts: `mtmc_evaluations_total{outcome}`,
// `mtmc_inspections_total{outcome}`, `mtmc_evaluation_phase{phase}`,
// `mtmc_evaluation_phase_seconds{phase}`,
// `mtmc_device_busy_seconds_total` and `mtmc_device_quarantined`.
// Thread-safe.
class WorkMetrics {
 public:
  // Borrows the registry, which must outlive it.
  explicit WorkMetrics(metrics::Registry& registry) : registry_(registry) {}

  void Record(const v1::LeaseResult& result);

  // The stage that the work in hand has reached; STAGE_UNSPECIFIED for none. Called
  // by one thread.
  void ShowStage(v1::Stage stage);

  // `reason` as LeaseLoop::CheckHealth.
  void RecordHealth(const std::string& reason);

 private:
  void RecordEvaluation(const v1::LeaseResult& result);

  metrics::Registry& registry_;
  v1::Stage stage_ = v1::STAGE_UNSPECIFIED;
};

}  // namespace mtmc::worker
