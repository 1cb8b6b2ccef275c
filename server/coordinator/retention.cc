// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/retention.h"

#include "common/base/log.h"
#include "google/protobuf/util/time_util.h"
#include "server/coordinator/artifact_sweep.h"
#include "server/search/search.h"

namespace mtmc::coordinator {

using base::Log;
using base::LogLevel;

void Retention::Tick() {
  const absl::Time now = parts_.clock.Now();
  if (options_.jobs != absl::ZeroDuration() && now >= next_jobs_) {
    next_jobs_ = now + options_.job_interval;
    SweepJobs(now);
  }
  if (options_.logs != absl::ZeroDuration() && now >= next_logs_) {
    next_logs_ = now + options_.job_interval;
    CompactLogs(now);
  }
  if (options_.artifacts != absl::ZeroDuration() && now >= next_artifacts_) {
    next_artifacts_ = now + options_.artifact_interval;
    // What refers to blobs is read by another thread, which sees only what is written.
    parts_.store.AfterFlush([this, now] { SweepArtifacts(now); });
  }
}

void Retention::SweepJobs(absl::Time now) {
  store::JobQuery query{
      .states = {v1::Job::STATE_SUCCEEDED, v1::Job::STATE_FAILED, v1::Job::STATE_CANCELLED},
      .order = {.field = store::JobOrder::Field::kEndTime, .is_descending = false},
      .page_size = options_.max_deleted};
  int num_deleted = 0;
  do {
    // What cannot be read or deleted now is by a later sweep.
    const auto oldest = parts_.store.ListJobs(query);
    if (!oldest.ok()) return;
    for (const v1::Job& job : oldest->jobs) {
      const absl::Time end = absl::FromUnixNanos(
          google::protobuf::util::TimeUtil::TimestampToNanoseconds(job.end_time()));
      if (now < end + options_.jobs || num_deleted == options_.max_deleted) return;
      const absl::Status status = parts_.delete_job(job.name());
      if (search::IsPassing(status)) return;
      if (status.ok()) ++num_deleted;
      // One that cannot be deleted does not keep the others.
      if (!status.ok()) {
        Log(LogLevel::kWarning, "job cannot be deleted", {{"job", job.name()}, {"error", status}});
      }
    }
    query.page_token = oldest->next_page_token;
  } while (!query.page_token.empty());
}

void Retention::CompactLogs(absl::Time now) {
  // Refused while the thread has something else to do: asked again at the next look.
  sweeper_.Submit([this, now] { FindCompactions(now); }).IgnoreError();
}

void Retention::FindCompactions(absl::Time now) {
  auto found = parts_.store.FindCompactions(now - options_.logs, options_.max_deleted);
  // What cannot be read now is by a later look.
  if (!found.ok() || found->empty()) return;
  parts_.loop.Post([this, found = *std::move(found)]() mutable {
    for (store::Compaction& each : found) {
      store::Write write{.job_name = std::move(each.job), .superseded = std::move(each.superseded)};
      const absl::Status status = parts_.store.CommitTaking(write);
      // One that was deleted meanwhile needs no log.
      if (!status.ok() && !absl::IsNotFound(status)) return;
    }
  });
}

void Retention::SweepArtifacts(absl::Time now) {
  const absl::Status begun = sweeper_.Submit([this, now] { RunArtifactSweep(now); });
  // Refused while one is under way: asked again at the next tick.
  if (!begun.ok()) parts_.loop.Post([this, now] { next_artifacts_ = now; });
}

void Retention::RunArtifactSweep(absl::Time now) {
  const ArtifactSweep sweep{.jobs = parts_.store,
                            .artifacts = parts_.artifacts,
                            .retention = options_.artifacts,
                            .is_trial = options_.is_artifact_trial,
                            .is_stopped = is_stopped_};
  const auto swept = sweep.Run(now);
  if (!swept.ok()) {
    if (is_stopped_) return;
    Log(LogLevel::kWarning, "artifacts cannot be swept", {{"error", swept.status()}});
    return;
  }
  parts_.metrics.ShowArtifacts(swept->num_blobs, swept->num_bytes);
  if (!options_.is_artifact_trial) {
    parts_.metrics.CountRemovedArtifacts(swept->num_removed, swept->num_removed_bytes);
  }
  Log(LogLevel::kInfo, options_.is_artifact_trial ? "artifacts would be swept" : "artifacts swept",
      {{"blobs", swept->num_blobs},
       {"bytes", swept->num_bytes},
       {"removed", swept->num_removed},
       {"removed_bytes", swept->num_removed_bytes}});
}

}  // namespace mtmc::coordinator
