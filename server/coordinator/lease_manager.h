// SPDX-License-Identifier: Apache-2.0
#pragma once

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
#include "server/coordinator/device_balance.h"
#include "server/coordinator/fleet_member.h"
#include "server/coordinator/lease_book.h"
#include "server/coordinator/loss_odds.h"
#include "server/coordinator/work_queue.h"
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
//     its leases is final; later ones are dropped. That of a worker that was lost is taken
//     also while nobody waits for it, until every job that it was granted for has ended.
//  3. A task that takes down workers is finished as a crash of the candidate: it must
//     not take down the fleet one by one. A lost worker counts against it only if it
//     ran there, alone, on different workers where there are several, at least
//     `max_losses` times, and too often for chance (LossOdds). No task is granted more
//     than `max_grants` times. A crash of the runner is counted apart and tried
//     `max_crashes` times. Work that a worker could not do goes to another, and rests before
//     it goes to the same, or once `max_failures` could not. One that is quarantined for the
//     same cause is not counted, and neither is what a worker gives back as it leaves: as if it
//     had not been granted.
//  4. A worker holds no more leases ahead of the one it works on than it can prepare,
//     and only while no other worker could begin their tasks at once. They have not
//     begun: losing the worker is no loss of a task, and a worker that becomes idle
//     takes one over. What was with a worker that was lost is held ahead no more, and
//     nothing beside it.
//  5. A worker is given, now or ahead, only work of which one of those who wait
//     demands no more than it has: device, dialect, isolation (fleet::Meets).
//  6. Among tasks that a worker can do, those of the project that had least device time
//     come first (ProjectShares), then those of the job served least recently, and within
//     a job the oldest.
//  7. A worker's name belongs to the identity that registered it until its time has
//     passed, and a lease to the identity that it was granted to; also over a restart.
//
// Between two calls no worker waits for work that lies in the queue and that it may do,
// unless the store refused the grant or the work rests: so what comes is offered to those who
// wait, and who comes is offered what lies there, and nobody looks through both. Tick does,
// for what was refused or has rested.
//
// Every call is made on the event loop; none waits for the disk. The caller calls Tick
// often, which is all the time there is in here.
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
    // How long there is no worker that may do a piece of work before its search hears
    // of it: above a restart of worker or coordinator, which is no news.
    absl::Duration patience = absl::Seconds(5);
    // Losses that a task is allowed whatever the odds.
    int max_losses = 3;
    // Odds that the losses of a task came by chance below which it is to blame: one of
    // a million good candidates.
    double max_odds = 1e-6;
    // The end of a task that is lost always but never by its doing, as far as one can
    // see: with workers lost in every third run, one of ten million comes so far.
    int max_grants = 16;
    // Workers that say that they cannot, and how long they say so at least until the work is
    // given up: above an outage of S3 or a network, or a disk that somebody clears.
    int max_failures = 3;
    absl::Duration max_failing = absl::Minutes(2);
    // How long work rests that a worker could not do, and that has no other; twice as long each
    // time. With these it is tried ten times within `max_failing`, below `max_grants`.
    absl::Duration min_rest = absl::Milliseconds(500);
    absl::Duration max_rest = absl::Seconds(30);
    int max_crashes = 2;
    // Workers that were not heard for so long are not listed, and forgotten unless they were
    // drained: names of pods and of jobs of a cluster never come again.
    absl::Duration memory = absl::Hours(24);
  };

  // Called once, at once or later, with the answer, and not before what it says survives
  // a crash; on any thread.
  using Reply = std::function<void(absl::StatusOr<v1::SynchronizeResponse>)>;

  // Takes up workers and leases where the last coordinator left them.
  static absl::StatusOr<std::unique_ptr<LeaseManager>> Create(const Options& options,
                                                              const base::Clock& clock,
                                                              store::JobStore& store,
                                                              CoordinatorMetrics& metrics);

  std::optional<search::DeviceChoice> FindDevice(const v1::Job& job) override;
  std::string WhyNoDevice(const v1::Job& job) override;
  void AwaitFleetChange(std::function<void()> changed) override;
  void Submit(search::Work work, search::Done<v1::LeaseResult> done) override;
  void Abandon(const std::string& key, const std::string& job) override;
  bool HasBegun(const std::string& key) const override;

  // One call of a worker; worker.proto has the codes. An idle worker is
  // answered when there is work or after `hold`. `identity` is who calls, as the guard
  // knows them; empty where nobody is asked.
  void Synchronize(v1::SynchronizeRequest request, const std::string& identity, Reply reply);

  // The worker's held call is gone: nothing may be granted through it.
  void Disconnect(const std::string& worker, const std::string& instance,
                  const std::string& identity);

  // Ends leases and held calls whose time has come, grants what can be, and says
  // what cannot.
  void Tick();

  // Answers every held call with UNAVAILABLE, so that workers come back later.
  void ReleaseHeld();

  // By name, without those unheard for `memory`.
  std::vector<v1::Worker> ListWorkers() const;
  // NOT_FOUND with reason WORKER_NOT_FOUND.
  absl::StatusOr<v1::Worker> LookupWorker(const std::string& name) const;
  absl::StatusOr<v1::Worker> SetDraining(const std::string& name, bool is_draining);

 private:
  LeaseManager(const Options& options, const base::Clock& clock, store::JobStore& store,
               CoordinatorMetrics& metrics);

  void Load(const store::Fleet& fleet);

  // Every write: says so, once, when the fleet begins to wait for the store. What
  // `told`, unless null, is told next depends on it.
  absl::Status Commit(store::Write write, FleetMember* told);

  // Gives the answer once what it depends on survives.
  void Tell(const FleetMember& state, const Reply& reply, v1::SynchronizeResponse response);
  void Hold(FleetMember& state, Reply reply);
  // What is held, if anything.
  Reply TakeHeld(FleetMember& state);
  // Tells whoever is held that there is nothing to do.
  void AnswerHeld(FleetMember& state);

  // Who calls (lease_admission.cc).
  absl::StatusOr<FleetMember*> Admit(const v1::SynchronizeRequest& request,
                                     const std::string& identity);
  void Remember(FleetMember& state);

  // The parts of Synchronize.
  absl::Status TakeResult(FleetMember& state, v1::SynchronizeRequest::Completed completed);
  void TakeFailure(FleetMember& state, store::LeaseRecord& record,
                   const v1::WorkerFailure& failure);
  void NoteFailure(Task& task, const std::string& why);
  absl::Status TakeProgress(FleetMember& state, const std::string& lease);
  void Answer(FleetMember& state, const v1::SynchronizeRequest& request, Reply reply);
  static google::protobuf::Timestamp ToProto(absl::Time time);
  absl::Status ConfirmOwnership(FleetMember& state);
  bool MayComeLate(const std::string& key) const;
  void PutOff(const std::string& key);
  void ForgetFinished(FleetMember& state);
  void DropUnclaimed();
  bool HasEnded(const std::string& job) const;

  // The life of a lease (lease_life.cc). Keys by value: what holds the original is erased here.
  void Dispatch();
  void Offer(FleetMember& state);
  void OfferToHeld(const std::string& key);
  Task* NextTaskFor(const FleetMember& state);
  std::optional<std::string> RecordGrant(FleetMember& state, Task& task, bool is_ahead);
  bool Grant(FleetMember& state, Task& task);
  void NoteBegun(Task& task);
  void Lose(FleetMember& state, const std::string& cause);
  void Blame(const FleetMember& state, Task& task);
  void SuspectAhead(const FleetMember& state);
  void Retry(store::LeaseRecord& record, Task* task, const std::string& cause, FleetMember* told);
  absl::Status Conclude(std::string key, v1::LeaseResult result, FleetMember* told);
  absl::Status GiveUp(const std::string& key);
  absl::Status CommitEnd(const std::string& key, const v1::LeaseResult& result,
                         const std::string& candidate, FleetMember* told);
  void SettleShare(const FleetMember& state, Task& task);

  // That of a lease that its worker has not begun.
  void GrantAhead(FleetMember& state);
  absl::Status BeginAhead(FleetMember& state);
  void TakeBackUnfit(FleetMember& state);
  void TakeBackAhead(FleetMember& state);
  void TakeBack(FleetMember& state, const std::string& lease);
  void GiveBack(FleetMember& state);
  bool TakeOverFor(const FleetMember& state);
  // `ahead` of the worker may have become empty, or is no longer.
  void NoteAhead(FleetMember& state);

  bool CanServe(const FleetMember& state, const Task& task) const;
  bool IsGrantable(const FleetMember& state, const Task& task) const;
  bool MayKeepAhead(const FleetMember& state, const std::string& lease) const;
  bool HasTask(const std::string& lease) const;
  bool HasOtherWorker(const FleetMember& state, const Task& task) const;
  v1::Lease LeaseOf(const store::LeaseRecord& record) const;
  // `executing` is the lease that the worker is known to have, if any.
  v1::SynchronizeResponse LeaseResponse(FleetMember& state, const std::string& executing = "");
  v1::SynchronizeResponse IdleResponse(FleetMember& state);

  // What is shown of the fleet (lease_fleet.cc).
  v1::Worker Describe(const FleetMember& state) const;
  bool HasWorker(const Shelf& shelf) const;
  void NoteFleetChange();
  void TellFleetChange();
  void TellStuck();
  void ForgetWorkers();
  bool IsForgotten(const FleetMember& state) const;
  void ShowMetrics();

  const Options options_;
  const base::Clock& clock_;
  store::JobStore& store_;
  CoordinatorMetrics& metrics_;
  const absl::Time start_time_;
  WorkQueue queue_;
  LeaseBook leases_;
  std::map<std::string, FleetMember> workers_;
  // Those whose call is held, and which of them were not offered anything yet.
  std::map<std::string, FleetMember*> held_;
  std::set<std::string> newly_held_;
  // Those that hold leases ahead.
  std::map<std::string, FleetMember*> preparing_;
  // Work that was granted and that no search asks for: by the last coordinator, or for a job that
  // has given it up since, perhaps for the time of a pause.
  std::set<std::string> unclaimed_;
  absl::Time unclaimed_time_ = absl::InfinitePast();
  LossOdds odds_;
  absl::Time metrics_time_ = absl::InfinitePast();
  absl::Time stuck_time_ = absl::InfinitePast();
  // Demands that no worker can serve as long as the fleet does not change, and why.
  std::map<std::string, std::string> unserved_;
  DeviceBalance balance_;
  absl::Time forget_time_ = absl::InfinitePast();
  std::vector<std::function<void()>> fleet_watchers_;
  bool has_fleet_changed_ = false;
  absl::Time fleet_time_ = absl::InfinitePast();
  // The last write failed.
  bool waits_for_store_ = false;
};

}  // namespace mtmc::coordinator
