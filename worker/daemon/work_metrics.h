// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/metrics/metrics.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::worker {

// What a worker counts: `mtmc_evaluations_total{outcome}`,
// `mtmc_inspections_total{outcome}` and `mtmc_evaluation_phase_seconds{phase}`.
// Thread-safe.
class WorkMetrics {
 public:
  // Borrows the registry, which must outlive it.
  explicit WorkMetrics(metrics::Registry& registry) : registry_(registry) {}

  void Record(const v1::LeaseResult& result);

 private:
  void RecordEvaluation(const v1::LeaseResult& result);

  metrics::Registry& registry_;
};

}  // namespace mtmc::worker
