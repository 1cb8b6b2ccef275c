// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/v1/worker.pb.h"
#include "server/search/backends.h"
#include "server/store/job_store.h"

namespace mtmc::base {
class Clock;
}

namespace mtmc::coordinator {

class CoordinatorMetrics;

// The queue of work and the fleet that does it. Searches submit work, workers
// synchronize, and this object brings the two together:
//
//   search --Submit--> task --grant--> lease --Synchronize--> worker
//     ^                                                          |
//     +---------- done <-- record in the store <-- Completed ----+
//
// Invariants:
//  1. A lease is in the store before its worker hears of it, and a result is in
//     the store, in one transaction with the end of its lease, before the
//     worker is answered or the search is told.
//  2. A task has at most one lease that is not lost. The first result of any of
//     its leases is final; later ones are dropped.
//  3. A task that lost `max_losses` workers is finished as a crash of the
//     candidate: it must not take down the fleet one by one. A crash of the
//     runner is counted apart and tried `max_crashes` times.
//  4. Among tasks that a worker can do, the job served least recently is first,
//     and within a job the oldest.
//
// Every call is made on the event loop; none blocks longer than a commit. The
// caller calls Tick often, which is all the time there is in here.
class LeaseManager final : public search::Evaluator {
 public:
  struct Options {
    // How long the call of an idle worker is held while there is no work. Long,
    // because work ends the wait at once.
    absl::Duration hold = absl::Seconds(5);
    // How often a busy worker calls, and so how soon it hears of a
    // cancellation.
    absl::Duration interval = absl::Milliseconds(500);
    // How late a worker may be before it is lost: above a restart of the
    // coordinator and a stutter of the network.
    absl::Duration grace = absl::Seconds(10);
    int max_losses = 3;
    int max_crashes = 2;
    // Workers that were not heard for so long are not listed.
    absl::Duration memory = absl::Hours(24);
  };

  // Called once, at once or later, with the answer.
  using Reply = std::function<void(absl::StatusOr<v1::SynchronizeResponse>)>;

  // Takes up workers and leases where the last coordinator left them.
  static absl::StatusOr<std::unique_ptr<LeaseManager>> Create(const Options& options,
                                                              const base::Clock& clock,
                                                              store::JobStore& store,
                                                              CoordinatorMetrics& metrics);

  std::optional<search::DeviceChoice> FindDevice(const v1::Job& job) override;
  void Submit(search::Work work, search::Done<v1::LeaseResult> done) override;
  void Abandon(const std::string& key, const std::string& job) override;

  // One call of a worker; worker.proto has the codes. An idle worker is
  // answered when there is work or after `hold`.
  void Synchronize(const v1::SynchronizeRequest& request, Reply reply);

  // The worker's held call is gone: nothing may be granted through it.
  void Disconnect(const std::string& worker, const std::string& instance);

  // Ends leases and held calls whose time has come, and grants what can be.
  void Tick();

  // Answers every held call with UNAVAILABLE, so that workers come back later.
  void ReleaseHeld();

  // By name, without those unheard for `memory`.
  std::vector<v1::Worker> ListWorkers() const;
  // NOT_FOUND with reason WORKER_NOT_FOUND.
  absl::StatusOr<v1::Worker> LookupWorker(const std::string& name) const;
  absl::StatusOr<v1::Worker> SetDraining(const std::string& name, bool is_draining);

 private:
  struct Waiter {
    std::string job;
    std::function<void()> granted;
    search::Done<v1::LeaseResult> done;
  };

  // Work that is not finished.
  struct Task {
    search::Work work;
    std::vector<Waiter> waiters;
    // Id of the one lease that is not lost; empty while it is queued.
    std::string lease;
    int losses = 0;
    int crashes = 0;
    std::string last_failure;
    // Workers that said they cannot; asked again only if there is no other.
    std::set<std::string> failed_on;
    uint64_t order = 0;
    absl::Time submit_time;
    bool was_granted = false;
  };

  struct WorkerState {
    v1::Worker worker;
    std::string instance;
    // Processes that a newer one of the same name replaced.
    std::set<std::string> replaced;
    // What it was granted and has not completed; empty when idle.
    std::string lease;
    bool is_live = false;
    bool is_draining = false;
    bool is_leaving = false;
    absl::Time expires = absl::InfiniteFuture();
    absl::Time written = absl::InfinitePast();
    // The held call of an idle worker.
    Reply held;
    absl::Time held_until;
  };

  LeaseManager(const Options& options, const base::Clock& clock, store::JobStore& store,
               CoordinatorMetrics& metrics);

  void Load(const store::Fleet& fleet);

  // The parts of Synchronize.
  absl::StatusOr<WorkerState*> Admit(const v1::SynchronizeRequest& request);
  absl::Status TakeResult(WorkerState& state, const v1::SynchronizeRequest::Completed& completed);
  void TakeProgress(WorkerState& state, const std::string& lease);
  void Answer(WorkerState& state, bool is_executing, Reply reply);
  void Remember(WorkerState& state);

  // The life of a lease. Keys by value: what holds the original is erased here.
  void Dispatch();
  Task* NextTaskFor(const WorkerState& state);
  bool Grant(WorkerState& state, Task& task);
  void Lose(const std::string& lease, const std::string& cause);
  absl::Status Retry(store::LeaseRecord& record, Task* task, const std::string& cause);
  absl::Status Conclude(std::string key, v1::LeaseResult result);
  absl::Status GiveUp(std::string key);
  absl::Status CommitEnd(const std::string& key, const v1::LeaseResult& result,
                         const std::string& candidate);
  void ForgetLeases(const std::string& key);

  bool CanServe(const WorkerState& state, const Task& task) const;
  bool HasTask(const WorkerState& state) const;
  bool HasOtherWorker(const WorkerState& state, const Task& task) const;
  v1::SynchronizeResponse LeaseResponse(WorkerState& state);
  v1::SynchronizeResponse IdleResponse(WorkerState& state);
  v1::Worker Describe(const WorkerState& state) const;
  void ShowMetrics();

  const Options options_;
  const base::Clock& clock_;
  store::JobStore& store_;
  CoordinatorMetrics& metrics_;
  const absl::Time start_time_;
  std::map<std::string, Task> tasks_;
  std::map<std::string, store::LeaseRecord> leases_;
  std::map<std::string, WorkerState> workers_;
  // When each job was last served, as a count of grants.
  std::map<std::string, uint64_t> served_;
  uint64_t next_order_ = 1;
};

}  // namespace mtmc::coordinator
