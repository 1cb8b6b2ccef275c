// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/executor.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/worker.pb.h"
#include "server/coordinator/coordinator_metrics.h"
#include "server/coordinator/job_feed.h"
#include "server/coordinator/lease_manager.h"
#include "server/coordinator/retention.h"
#include "server/search/event_loop.h"
#include "server/search/search.h"
#include "server/store/blob_queue.h"

namespace mtmc::coordinator {

// The coordinator without its wire: the jobs with their searches, and the fleet
// with its leases, on one event loop.
//
//   services (gRPC threads, executor)          event loop
//   --------------------------------           ----------
//   changes of jobs, workers        -- ask -->  searches, LeaseManager
//   Synchronize                     -- post --> LeaseManager
//   Get, List, Watch                -- read --> store (any thread)
//
// Where several coordinators share a store, one of them has such an object at a time
// (tenure.h), and its store is fenced by its epoch.
//
// A service: thread-safe, immovable. Calls that change something block for the
// turn of the loop and a commit; call them from an executor.
class Coordinator final : private search::SearchObserver {
 public:
  struct Options {
    LeaseManager::Options leases;
    search::Search::Options search;
    // How often the fleet is looked over for what has expired.
    absl::Duration tick = absl::Milliseconds(50);
    Retention::Options retention;
  };

  // All outlive the coordinator.
  struct Parts {
    store::JobStore& store;
    store::ArtifactStore& artifacts;
    search::MicroCoder& coder;
    search::MacroPolicy& policy;
    const base::Clock& clock;
    CoordinatorMetrics& metrics;
    // Told of new events.
    JobFeed& feed;
  };

  // Takes up every job that has not ended, and starts.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Create(const Options& options,
                                                             const Parts& parts);

  // Stops; jobs go on with the next coordinator.
  ~Coordinator() override;

  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Whether who calls may read a blob.
  using MayRead = std::function<absl::StatusOr<bool>(const v1::Digest&)>;

  // The methods of JobService that change something; job.proto has the codes.
  // A blob that the caller may not read is as if it were absent; with null all are read.
  // `creator` is who calls; empty where nobody is asked.
  absl::StatusOr<v1::CreateJobResponse> CreateJob(const v1::CreateJobRequest& request,
                                                  const MayRead& may_read = nullptr,
                                                  const std::string& creator = "");
  absl::StatusOr<v1::Job> CancelJob(const std::string& name);
  absl::StatusOr<v1::Job> PauseJob(const std::string& name);
  absl::StatusOr<v1::Job> ResumeJob(const std::string& name);
  absl::Status DeleteJob(const std::string& name);

  // Never blocks; `reply` is called on any thread.
  // `identity` is who calls, as the guard knows them; empty where nobody is asked.
  void Synchronize(const v1::SynchronizeRequest& request, const std::string& identity,
                   LeaseManager::Reply reply);
  void Disconnect(const std::string& worker, const std::string& instance,
                  const std::string& identity);

  absl::StatusOr<std::vector<v1::Worker>> ListWorkers();
  absl::StatusOr<v1::Worker> LookupWorker(const std::string& name);
  absl::StatusOr<v1::Worker> SetDraining(const std::string& name, bool is_draining);

  // What another store learned; of two for one task the faster stays.
  absl::Status ImportRecords(const std::vector<store::LearnedRecord>& records);

  // NOT_FOUND with reason RECORD_NOT_FOUND.
  absl::Status DeleteRecord(const std::string& name);

  // New limits of projects.
  absl::Status SetQuotaLimits(const std::vector<store::QuotaLimit>& limits);

  // OK while the event loop turns; else UNAVAILABLE with what it does not. For /readyz.
  absl::Status CheckLoop() const;

  // Ends every held call with UNAVAILABLE, so that a server need not wait for them.
  void ReleaseCalls();

  // Ends the loop; later calls are UNAVAILABLE.
  void Stop();

 private:
  Coordinator(const Options& options, const Parts& parts);

  absl::Status Load();

  // Whether what is asked comes after all that workers said before.
  enum class Turn { kFirst, kInOrder };

  // Runs `task` on the loop and waits for it. UNAVAILABLE once stopped.
  template <class T>
  absl::StatusOr<T> Ask(std::function<absl::StatusOr<T>()> task, Turn turn = Turn::kFirst);

  absl::StatusOr<v1::Job> Insert(v1::Job job, const std::string& request_id);
  // Asks the job's search, begun again if it had given up.
  absl::StatusOr<v1::Job> AskSearch(const std::string& name,
                                    absl::StatusOr<v1::Job> (search::Search::*what)());
  void StartSearch(const std::string& job);
  void OnSearchEnd(const std::string& job, const absl::Status& status);
  absl::Status RemoveJob(const std::string& name);
  absl::Status CheckQuota(const v1::Job& job);
  void ShowQuotas();
  void Tick();
  void ShowJobs();
  absl::StatusOr<std::vector<v1::Job>> FindByRequest(const v1::CreateJobRequest& request);
  // ARTIFACT_NOT_FOUND names `what` if the blob is not in the store, or not for the caller.
  absl::Status CheckUploaded(const std::string& what, const v1::Digest& digest,
                             const MayRead& may_read);

  void OnEvents(const std::string& job) override;
  void OnDecision(const std::string& policy, v1::Action::Type type) override;
  void OnFallback(const std::string& cause) override;
  void OnCacheLookup(bool is_hit) override;
  void OnCandidate(const v1::Job& job, const v1::Candidate& candidate) override;
  void OnEnd(const v1::Job& job, const v1::Candidate* best) override;

  const Options options_;
  const Parts parts_;
  std::atomic<bool> is_stopped_ = false;
  // When Tick ran last, in nanoseconds since the epoch.
  std::atomic<int64_t> last_tick_ = absl::GetCurrentTimeNanos();
  // Before the loop, whose searches use them. Each search has one blob in them at most.
  base::Executor readers_{{.name = "mtmc-readers", .num_threads = 4, .max_queued = 1'000'000}};
  store::BlobQueue blobs_;
  search::EventLoop loop_;
  Retention retention_;
  // The store tells the feed itself. Constant once the loop has started.
  bool has_events_sent_ = false;
  // On the loop only.
  bool is_first_tick_ = true;
  absl::Time next_quotas_ = absl::InfinitePast();
  std::unique_ptr<LeaseManager> leases_;
  // Those that go on. Shared with the task that drops one after its end.
  std::map<std::string, std::shared_ptr<search::Search>> searches_;
};

}  // namespace mtmc::coordinator
