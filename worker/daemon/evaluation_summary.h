// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/daemon/call_log.h"

namespace mtmc::worker {

// In the totals of an evaluation: what it waited for a build that was under way.
inline constexpr char kPrefetchAwait[] = "prefetch.await";

// Where the time of many evaluations went: what the device did for candidates
// and baselines, and the rest, which is overhead, stage by stage.
class EvaluationSummary {
 public:
  // `wall` is what a caller waited for this result, `calls` what the children
  // were asked for it.
  void Add(const v1::LeaseResult& result, absl::Duration wall, const CallLog::Totals& calls);

  // Evaluations without a worker failure.
  int num_evaluated() const { return num_evaluated_; }

  int num_worker_failures() const { return num_worker_failures_; }

  // JSON object; seconds and milliseconds as the keys say. `wall` is the time of
  // all evaluations together. Percentiles are over correct candidates.
  std::string ToJson(absl::Duration wall) const;

 private:
  int num_evaluated_ = 0;
  int num_worker_failures_ = 0;
  int num_hidden_builds_ = 0;
  // By outcome: `correct` or the kind of failure.
  std::map<std::string, int> outcomes_;
  double device_seconds_ = 0;
  // Of correct candidates, one entry each.
  std::vector<double> wall_seconds_;
  std::vector<double> overhead_seconds_;
  std::map<std::string, std::vector<double>> stage_seconds_;
  std::map<std::string, std::vector<double>> call_seconds_;
};

}  // namespace mtmc::worker
