// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/metrics/metrics.h"
#include "mtmc/v1/action.pb.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "mtmc/v1/job.pb.h"
#include "server/coordinator/speedup_metrics.h"
#include "server/store/quota.h"

namespace mtmc::coordinator {

// Every metric that the coordinator serves, by event. No label holds a name of
// a job, candidate or user. Thread-safe, but for Show*, which the event loop
// alone calls.
class CoordinatorMetrics {
 public:
  // Numbers of the fleet by {state, product}, or of the queue by {queue, product}.
  using Counts = std::map<std::pair<std::string, std::string>, int>;

  explicit CoordinatorMetrics(metrics::Registry& registry);

  void CountDecision(const std::string& policy, v1::Action::Type type);
  void CountFallback(const std::string& cause);
  void CountCacheLookup(const std::string& cache, bool is_hit);
  void CountEvaluation(const v1::Evaluation& evaluation);
  void CountCandidate(const v1::Job& job, const v1::Candidate& candidate);
  // `best` as of search::SearchObserver.
  void CountEnd(const v1::Job& job, const v1::Candidate* best);
  void CountGrant(absl::Duration waited);
  // `cause`: `expired`, `restarted`, `worker_failure`.
  void CountLostWorker(const std::string& cause);
  void CountExpiredLease();
  // `cause`: `worker_lost`, `candidate_failed`, `given_back`.
  void CountRetry(const std::string& cause);
  void ObservePolicy(absl::Duration duration);
  // Of a sweep over the artifacts; on any thread.
  void ShowArtifacts(int64_t blobs, int64_t bytes);
  void CountRemovedArtifacts(int64_t blobs, int64_t bytes);
  // How late the event loop came to a task that was due.
  void ObserveLag(absl::Duration lag);

  // Replace what the gauges showed before.
  void ShowJobs(const std::map<std::string, int>& jobs_by_state);
  void ShowQueue(const Counts& counts);
  void ShowWorkers(const Counts& counts);
  void ShowQuotas(const std::vector<store::ProjectQuota>& quotas);

  // Another coordinator owns the jobs: nobody may add what this one saw to what that one sees.
  void ShowNothing();

 private:
  void Show(const char* name, const char* help, const char* first_label, const Counts& counts,
            Counts& shown);

  metrics::Registry& registry_;
  const metrics::Histogram queue_wait_;
  const metrics::Histogram policy_seconds_;
  const metrics::Histogram loop_lag_;
  const metrics::Counter expired_leases_;
  SpeedupMetrics speedups_;
  // Products as selectors of jobs name them, and as workers have them.
  metrics::BoundedLabel products_{20};
  metrics::BoundedLabel policies_{10};
  std::map<std::string, int> shown_jobs_;
  Counts shown_queue_;
  Counts shown_workers_;
  // Projects of quotas.
  metrics::BoundedLabel quota_projects_{200};
  // Series of quotas by name, project and kind.
  std::set<std::array<std::string, 3>> shown_quotas_;
};

}  // namespace mtmc::coordinator
