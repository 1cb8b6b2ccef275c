// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/executor.h"
#include "server/coordinator/coordinator_metrics.h"
#include "server/search/event_loop.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"

namespace mtmc::coordinator {

// Ages out jobs that have ended, what their logs can do without, and artifacts that nothing
// refers to. Jobs are deleted on the event loop, a few in a turn; the others are looked for by a
// thread of this object.
//
// Made, ticked and destroyed with its loop, which it borrows like all its parts.
class Retention {
 public:
  struct Options {
    // How long a job that has ended is kept; 0 is for ever.
    absl::Duration jobs;
    // Between two looks for jobs that have been kept long enough, and how many each
    // deletes at most: a hundred take some 100 ms of the loop.
    absl::Duration job_interval = absl::Minutes(1);
    int max_deleted = 100;
    // How long the log of a job that has ended stays as it was written; 0 is for ever. As many
    // as are deleted are compacted at a time.
    absl::Duration logs;
    // How long an artifact that nothing refers to is kept after it was written; 0 is for
    // ever. Above what an upload and the creation of its job take.
    absl::Duration artifacts;
    absl::Duration artifact_interval = absl::Hours(1);
    // Tells what a sweep of artifacts would remove, and removes nothing.
    bool is_artifact_trial = false;
  };

  struct Parts {
    store::JobStore& store;
    store::ArtifactStore& artifacts;
    const base::Clock& clock;
    CoordinatorMetrics& metrics;
    search::EventLoop& loop;
    // Deletes a job that has ended.
    std::function<absl::Status(const std::string& job)> delete_job;
  };

  Retention(const Options& options, Parts parts) : options_(options), parts_(std::move(parts)) {}

  // Sweeps what is due. On the loop only.
  void Tick();

  // A sweep of artifacts that is under way ends soon. From any thread.
  void Stop() { is_stopped_ = true; }

 private:
  void SweepJobs(absl::Time now);
  void CompactLogs(absl::Time now);
  void SweepArtifacts(absl::Time now);
  // These two on the sweeper's thread.
  void FindCompactions(absl::Time now);
  void RunArtifactSweep(absl::Time now);

  const Options options_;
  const Parts parts_;
  std::atomic<bool> is_stopped_ = false;
  base::Executor sweeper_{{.name = "mtmc-sweeper", .num_threads = 1, .max_queued = 1}};
  absl::Time next_jobs_ = absl::InfinitePast();
  absl::Time next_logs_ = absl::InfinitePast();
  absl::Time next_artifacts_ = absl::InfinitePast();
};

}  // namespace mtmc::coordinator
