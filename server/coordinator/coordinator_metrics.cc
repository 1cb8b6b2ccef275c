// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/coordinator_metrics.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/enum_word.h"
#include "common/base/string_view.h"
#include "google/protobuf/util/time_util.h"

namespace mtmc::coordinator {
namespace {

// A queue waits from a dispatch (20 ms) to an hour without a worker.
const std::vector<double>& QueueBuckets() {
  static const auto* const kBuckets =
      new std::vector<double>{0.01, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600};
  return *kBuckets;
}

constexpr char kFallback[] = "mtmc_policy_fallback_total";
constexpr char kFallbackHelp[] =
    "Decisions of the rules because the policy service did not decide.";
constexpr char kLost[] = "mtmc_worker_lost_total";
constexpr char kLostHelp[] = "Workers that were lost while they had a lease.";
constexpr char kRetries[] = "mtmc_task_retries_total";
constexpr char kRetriesHelp[] = "Work that was queued again.";
constexpr char kRejected[] = "mtmc_evaluations_rejected_total";
constexpr char kRejectedHelp[] =
    "Evaluations whose program does not do what it should, by what is wrong with it.";

const char* QuotaHelp(const std::string& name) {
  if (name == "mtmc_quota_open_jobs") return "Open jobs of a project, and how many it may have.";
  if (name == "mtmc_quota_device_seconds") {
    return "Device time of a project: used, reserved and allowed.";
  }
  return "Tokens of language models of a project: used, reserved and allowed.";
}

// Whether the program ran, and must not be trusted.
bool IsRejection(v1::Failure::Kind kind) {
  switch (kind) {
    case v1::Failure::KIND_WRONG_RESULT:
    case v1::Failure::KIND_OUT_OF_BOUNDS:
    case v1::Failure::KIND_INPUT_CHANGED:
    case v1::Failure::KIND_NONDETERMINISTIC:
    case v1::Failure::KIND_CHEAT:
      return true;
    default:
      return false;
  }
}

}  // namespace

CoordinatorMetrics::CoordinatorMetrics(metrics::Registry& registry)
    : registry_(registry),
      queue_wait_(registry.MakeHistogram("mtmc_queue_wait_seconds",
                                         "Time from submission of work to its first grant.",
                                         QueueBuckets())),
      policy_seconds_(
          registry.MakeHistogram("mtmc_policy_call_seconds",
                                 "Time of an answered call of the policy service, as its caller "
                                 "sees it.",
                                 metrics::SecondsBuckets())),
      loop_lag_(registry.MakeHistogram("mtmc_event_loop_lag_seconds",
                                       "How late the event loop comes to what is due.",
                                       metrics::SecondsBuckets())),
      expired_leases_(registry.MakeCounter("mtmc_worker_lease_expired_total",
                                           "Leases whose worker did not call in time.")),
      speedups_(registry) {
  ShowArtifacts(0, 0);
  CountRemovedArtifacts(0, 0);
  // What alerts ask for exists from the start: a counter that begins with 1 has no rate.
  for (const char* cause : {"deadline", "unavailable", "invalid", "error"}) {
    registry_.MakeCounter(kFallback, kFallbackHelp, {{"cause", cause}});
  }
  for (const char* cause : {"expired", "restarted", "worker_failure"}) {
    registry_.MakeCounter(kLost, kLostHelp, {{"cause", cause}});
  }
  for (const char* cause : {"worker_lost", "candidate_failed", "given_back"}) {
    registry_.MakeCounter(kRetries, kRetriesHelp, {{"cause", cause}});
  }
  for (const char* reason :
       {"cheat", "wrong_result", "out_of_bounds", "input_changed", "nondeterministic"}) {
    registry_.MakeCounter(kRejected, kRejectedHelp, {{"reason", reason}});
  }
}

void CoordinatorMetrics::CountDecision(const std::string& policy, v1::Action::Type type) {
  registry_
      .MakeCounter("mtmc_policy_decisions_total",
                   "Recorded decisions, by who made them and the action's type.",
                   {{"policy", policies_.Of(policy)},
                    {"action", base::EnumWord(v1::Action::Type_Name(type), "TYPE_")}})
      .Increment();
}

void CoordinatorMetrics::CountFallback(const std::string& cause) {
  registry_.MakeCounter(kFallback, kFallbackHelp, {{"cause", cause}}).Increment();
}

void CoordinatorMetrics::CountCacheLookup(const std::string& cache, bool is_hit) {
  registry_
      .MakeCounter("mtmc_cache_requests_total", "Look-ups in a cache.",
                   {{"cache", cache}, {"result", is_hit ? "hit" : "miss"}})
      .Increment();
}

void CoordinatorMetrics::CountEvaluation(const v1::Evaluation& evaluation) {
  const bool is_failed = evaluation.has_failure();
  const auto stage = is_failed ? evaluation.failure().stage() : v1::STAGE_MEASURE;
  const std::string outcome =
      is_failed ? base::EnumWord(v1::Failure::Kind_Name(evaluation.failure().kind()), "KIND_")
                : "measured";
  registry_
      .MakeCounter(
          "mtmc_evaluations_total",
          "Finished evaluations: measured, or what failed and in which stage.",
          {{"stage", base::EnumWord(v1::Stage_Name(stage), "STAGE_")}, {"outcome", outcome}})
      .Increment();
  if (IsRejection(evaluation.failure().kind())) {
    registry_.MakeCounter(kRejected, kRejectedHelp, {{"reason", outcome}}).Increment();
  }
  for (const v1::StageSpan& span : evaluation.spans()) {
    const auto nanos = google::protobuf::util::TimeUtil::DurationToNanoseconds(span.end_time() -
                                                                               span.start_time());
    registry_
        .MakeHistogram("mtmc_evaluation_phase_seconds",
                       "Time of one stage of an evaluation on its worker.",
                       metrics::SecondsBuckets(),
                       {{"phase", base::EnumWord(v1::Stage_Name(span.stage()), "STAGE_")}})
        .Observe(static_cast<double>(nanos) * 1e-9);
  }
}

void CoordinatorMetrics::CountCandidate(const v1::Job& job, const v1::Candidate& candidate) {
  speedups_.CountCandidate(job, candidate);
}

void CoordinatorMetrics::CountEnd(const v1::Job& job, const v1::Candidate* best) {
  speedups_.CountEnd(job, best);
}

void CoordinatorMetrics::CountGrant(absl::Duration waited) {
  queue_wait_.Observe(absl::ToDoubleSeconds(waited));
}

void CoordinatorMetrics::CountLostWorker(const std::string& cause) {
  registry_.MakeCounter(kLost, kLostHelp, {{"cause", cause}}).Increment();
}

void CoordinatorMetrics::CountExpiredLease() { expired_leases_.Increment(); }

void CoordinatorMetrics::CountRetry(const std::string& cause) {
  registry_.MakeCounter(kRetries, kRetriesHelp, {{"cause", cause}}).Increment();
}

void CoordinatorMetrics::ObservePolicy(absl::Duration duration) {
  policy_seconds_.Observe(absl::ToDoubleSeconds(duration));
}

void CoordinatorMetrics::ObserveLag(absl::Duration lag) {
  loop_lag_.Observe(absl::ToDoubleSeconds(lag));
}

void CoordinatorMetrics::ShowArtifacts(int64_t blobs, int64_t bytes) {
  registry_.MakeGauge("mtmc_artifacts", "Artifacts that the newest sweep found.")
      .Set(static_cast<double>(blobs));
  registry_.MakeGauge("mtmc_artifacts_bytes", "Their size.").Set(static_cast<double>(bytes));
}

void CoordinatorMetrics::CountRemovedArtifacts(int64_t blobs, int64_t bytes) {
  registry_
      .MakeCounter("mtmc_artifacts_removed_total",
                   "Artifacts that sweeps removed because nothing referred to them.")
      .Increment(static_cast<double>(blobs));
  registry_.MakeCounter("mtmc_artifacts_removed_bytes_total", "Their size.")
      .Increment(static_cast<double>(bytes));
}

void CoordinatorMetrics::ShowJobs(const std::map<std::string, int>& jobs_by_state) {
  for (auto& [state, count] : shown_jobs_) count = 0;
  for (const auto& [state, count] : jobs_by_state) shown_jobs_[state] = count;
  for (const auto& [state, count] : shown_jobs_) {
    registry_.MakeGauge("mtmc_jobs", "Jobs that have not ended, by state.", {{"state", state}})
        .Set(count);
  }
}

void CoordinatorMetrics::ShowQueue(const Counts& counts) {
  Show("mtmc_queue_depth", "Work that waits for a worker, by the product that it is for.", "queue",
       counts, shown_queue_);
}

void CoordinatorMetrics::ShowWorkers(const Counts& counts) {
  Show("mtmc_workers", "Workers that the coordinator knows, by state.", "state", counts,
       shown_workers_);
}

void CoordinatorMetrics::ShowQuotas(const std::vector<store::ProjectQuota>& quotas) {
  std::map<std::array<std::string, 3>, double> values;
  for (const store::ProjectQuota& quota : quotas) {
    const std::string project =
        quota_projects_.Of(quota.project.substr(quota.project.find('/') + 1));
    // A project whose jobs have all ended has 0 open ones.
    values[{"mtmc_quota_open_jobs", project, "used"}] += 0;
    for (const auto& [resource, account] : quota.accounts) {
      const bool is_time = resource == store::QuotaResource::kDeviceTime;
      const double unit = is_time ? 1e-6 : 1;
      const std::string name =
          is_time ? "mtmc_quota_device_seconds"
                  : absl::StrCat("mtmc_quota_", base::ToAbsl(store::QuotaResourceName(resource)));
      const auto show = [&](const char* kind, int64_t amount) {
        values[{name, project, kind}] += unit * static_cast<double>(amount);
      };
      if (account.allowed) show("limit", *account.allowed);
      if (resource == store::QuotaResource::kOpenJobs) {
        show("used", account.reserved);
      } else {
        show("used", account.used);
        show("reserved", account.reserved);
      }
    }
  }
  const auto labels = [](const std::array<std::string, 3>& series) {
    return metrics::Labels{{"project", series[1]}, {"kind", series[2]}};
  };
  // A limit that is gone is no limit of 0.
  std::erase_if(shown_quotas_, [&](const auto& series) {
    if (values.contains(series)) return false;
    registry_.RemoveGauge(series[0], QuotaHelp(series[0]), labels(series));
    return true;
  });
  for (const auto& [series, value] : values) {
    registry_.MakeGauge(series[0], QuotaHelp(series[0]), labels(series)).Set(value);
    shown_quotas_.insert(series);
  }
}

void CoordinatorMetrics::ShowNothing() {
  ShowJobs({});
  ShowQueue({});
  ShowWorkers({});
  ShowQuotas({});
  ShowArtifacts(0, 0);
  speedups_.ForgetProblems();
}

void CoordinatorMetrics::Show(const char* name, const char* help, const char* first_label,
                              const Counts& counts, Counts& shown) {
  // A combination that is gone shows 0: Prometheus would keep its last value.
  for (auto& [key, count] : shown) count = 0;
  for (const auto& [key, count] : counts) shown[{key.first, products_.Of(key.second)}] += count;
  for (const auto& [key, count] : shown) {
    registry_.MakeGauge(name, help, {{first_label, key.first}, {"gpu_product", key.second}})
        .Set(count);
  }
}

}  // namespace mtmc::coordinator
