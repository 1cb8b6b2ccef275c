// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/metrics/metrics.h"
#include "mtmc/v1/device.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::worker {

// What a worker counts of its own; what became of its results is the coordinator's to
// count. All but the first carry `gpu_product`.
//
// | metric                                   |                                             |
// | mtmc_worker_phase{phase}                 | 1 for the stage that it is in               |
// | mtmc_worker_evaluations_total{outcome}   | `correct`, the failure, `worker_failed`     |
// | mtmc_worker_inspections_total{outcome}   | `inspected`, `problem_failed`               |
// | mtmc_gpu_busy_seconds_total              | of kernels; its rate is the busy ratio      |
// | mtmc_gpu_quarantined                     | 1 after a failed canary                     |
// | mtmc_gpu_dropped_samples_total{reason}   | `throttled`, `clock_changed`, `late`        |
//
// Thread-safe.
class WorkMetrics {
 public:
  // Borrows the registry, which must outlive it.
  explicit WorkMetrics(metrics::Registry& registry) : registry_(registry) {}

  // The device that all that follows is about; all series of it are there from now on.
  void ShowDevice(const v1::DeviceFacts& device) ABSL_LOCKS_EXCLUDED(mu_);

  void Record(const v1::LeaseResult& result);

  // The stage that the work in hand has reached; STAGE_UNSPECIFIED for none. Called
  // by one thread.
  void ShowStage(v1::Stage stage);

  // `reason` as LeaseLoop::CheckHealth.
  void RecordHealth(const std::string& reason) ABSL_LOCKS_EXCLUDED(mu_);

  // OK unless the device is quarantined.
  absl::Status health() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void RecordEvaluation(const v1::LeaseResult& result);
  void CountDropped(const v1::Measurement& measurement);
  metrics::Labels LabelsWith(const std::string& name, const std::string& value) const
      ABSL_LOCKS_EXCLUDED(mu_);

  metrics::Registry& registry_;
  v1::Stage stage_ = v1::STAGE_UNSPECIFIED;
  mutable absl::Mutex mu_;
  std::string product_ ABSL_GUARDED_BY(mu_);
  std::string quarantine_reason_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::worker
