// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/lease_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/coordinator/coordinator_metrics.h"
#include "server/search/search.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

// Between two counts of workers and queue for the metrics.
constexpr absl::Duration kShownEvery = absl::Seconds(1);

// Between two looks at what nobody has asked for: each reads the store.
constexpr absl::Duration kUnclaimedEvery = absl::Seconds(1);

absl::Status NotYours(const std::string& name, const store::LeaseRecord& record) {
  return rpc::MakeError(
      absl::StatusCode::kPermissionDenied, "LEASE_NOT_YOURS",
      absl::StrCat("lease ", record.id, " is of ", record.worker, " and who runs it; ", name,
                   " as you run it may not report for it"),
      {{"worker", name}});
}

bool IsLeaseOf(const store::LeaseRecord& record, const FleetMember& state) {
  return record.worker == state.worker.name() && IsSameIdentity(record.identity, state.identity);
}

bool FitsWork(const v1::LeaseResult& result, bool is_evaluation) {
  return is_evaluation ? result.has_evaluation()
                       : result.has_inspection() || result.has_problem_failure();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LeaseManager>> LeaseManager::Create(const Options& options,
                                                                   const base::Clock& clock,
                                                                   store::JobStore& store,
                                                                   CoordinatorMetrics& metrics) {
  MTMC_ASSIGN_OR_RETURN(const store::Fleet fleet, store.ReadFleet());
  auto manager = std::unique_ptr<LeaseManager>(new LeaseManager(options, clock, store, metrics));
  manager->Load(fleet);
  return manager;
}

LeaseManager::LeaseManager(const Options& options, const base::Clock& clock, store::JobStore& store,
                           CoordinatorMetrics& metrics)
    : options_(options),
      clock_(clock),
      store_(store),
      metrics_(metrics),
      start_time_(clock.Now()) {}

void LeaseManager::Load(const store::Fleet& fleet) {
  for (const store::WorkerRecord& record : fleet.workers) {
    FleetMember& state = workers_[record.worker.name()];
    state.worker = record.worker;
    state.is_draining = record.is_draining;
    state.identity = record.identity;
    state.written = start_time_;
    // It has not been told that the coordinator was away, and keeps its name meanwhile.
    if (!state.identity.empty()) state.expires = start_time_ + options_.interval + options_.grace;
  }
  for (const store::LeaseRecord& record : fleet.leases) {
    leases_.Put(record);
    unclaimed_.insert(record.work);
    if (record.is_lost) continue;
    // Its worker has not been told that the coordinator was away; it gets the
    // same time to call as if it had just been granted.
    FleetMember& state = workers_[record.worker];
    state.worker.set_name(record.worker);
    state.instance = record.instance;
    if (record.is_ahead) {
      state.ahead.push_back(record.id);
      NoteAhead(state);
    } else {
      state.Take(record.id, start_time_);
    }
    state.expires = start_time_ + options_.interval + options_.grace;
  }
}

void LeaseManager::Submit(search::Work work, search::Done<v1::LeaseResult> done) {
  Task::Waiter waiter{.job = work.lease.job(),
                      .demand = work.demand,
                      .granted = work.granted,
                      .stuck = work.stuck,
                      .done = std::move(done)};
  const auto [task, is_new] = queue_.Add(std::move(work), std::move(waiter), clock_.Now());
  bool has_begun = !task.lease.empty() && !leases_.At(task.lease).is_ahead;
  if (is_new) {
    unclaimed_.erase(task.work.key);
    for (const store::LeaseRecord* record : leases_.OfWork(task.work.key)) {
      task.losses = std::max(task.losses, record->losses);
      task.crashes = std::max(task.crashes, record->crashes);
      if (record->is_lost) continue;
      queue_.SetLease(task, record->id);
      has_begun = !record->is_ahead;
    }
    // Of what was lost before a restart only the number is known.
    task.is_suspect = task.losses > 0;
    if (task.losses >= options_.max_grants) queue_.GiveUp(task);
    // Its worker may wait for it.
    if (!task.lease.empty()) newly_held_.insert(leases_.At(task.lease).worker);
  }
  if (has_begun && task.waiters.back().granted) task.waiters.back().granted();
  Dispatch();
}

void LeaseManager::Abandon(const std::string& key, const std::string& job) {
  Task* task = queue_.Find(key);
  if (task == nullptr) return;
  queue_.RemoveWaiter(*task, job);
  if (!task->waiters.empty()) return;
  queue_.Erase(key);
  if (MayComeLate(key)) return PutOff(key);
  leases_.ForgetWork(key);
  // A row that stays behind is dropped when the next coordinator finds that
  // nobody wants it.
  Commit({.finished_work = key}, nullptr).IgnoreError();
}

// Whether a worker that was lost with this work may have done it all the same.
bool LeaseManager::MayComeLate(const std::string& key) const {
  const auto records = leases_.OfWork(key);
  return std::any_of(records.begin(), records.end(), [](const store::LeaseRecord* record) {
    return record->is_lost && !record->is_ahead;
  });
}

// Nobody works on it any more, but a late result is taken until its jobs have ended: one that is
// only paused asks for it again, and must find what was acknowledged.
void LeaseManager::PutOff(const std::string& key) {
  unclaimed_.insert(key);
  for (const store::LeaseRecord* record : leases_.OfWork(key)) {
    if (record->is_lost) continue;
    FleetMember& holder = workers_.at(record->worker);
    if (holder.lease == record->id) holder.lease.clear();
    TakeBack(holder, record->id);
  }
}

void LeaseManager::Synchronize(v1::SynchronizeRequest request, const std::string& identity,
                               Reply reply) {
  absl::StatusOr<FleetMember*> admitted = Admit(request, identity);
  if (!admitted.ok()) return reply(admitted.status());
  FleetMember& state = **admitted;
  if (request.has_completed()) {
    const absl::Status status = TakeResult(state, std::move(*request.mutable_completed()));
    if (!status.ok()) return reply(status);
  } else if (request.has_executing()) {
    const absl::Status status = TakeProgress(state, request.executing().lease_id());
    if (!status.ok()) return reply(status);
  } else if ((state.is_quarantined() || state.is_leaving) && !state.lease.empty()) {
    // Granted before the canary failed, and not begun; or its worker leaves, and has no time
    // left for it, or never heard of it.
    GiveBack(state);
  }
  ForgetFinished(state);
  TakeBackUnfit(state);
  if (!request.has_executing()) {
    const absl::Status status = BeginAhead(state);
    if (!status.ok()) return reply(status);
  }
  Remember(state);
  Answer(state, request, std::move(reply));
  Dispatch();
  // A result is acknowledged at once; the worker then waits with its next call.
  if (request.has_completed()) AnswerHeld(state);
}

absl::Status LeaseManager::TakeResult(FleetMember& state,
                                      v1::SynchronizeRequest::Completed completed) {
  store::LeaseRecord* const found = leases_.Find(completed.lease_id());
  // Nobody wants it, unless the jobs have another owner by now, which granted it.
  if (found == nullptr) MTMC_RETURN_IF_ERROR(ConfirmOwnership(state));
  if (found != nullptr) {
    store::LeaseRecord& record = *found;
    if (!IsLeaseOf(record, state)) return NotYours(state.worker.name(), record);
    Task* task = queue_.Find(record.work);
    if (task != nullptr) SettleShare(state, *task);
    v1::LeaseResult result = std::move(*completed.mutable_result());
    const bool is_failed =
        result.has_worker_failure() || !FitsWork(result, !record.candidate.empty());
    const bool is_crash = result.evaluation().failure().kind() == v1::Failure::KIND_CRASH;
    if (is_failed) {
      if (!record.is_lost) TakeFailure(state, record, result.worker_failure());
    } else if (is_crash && !record.is_lost && record.crashes + 1 < options_.max_crashes) {
      ++record.crashes;
      Retry(record, task, "candidate_failed", &state);
    } else {
      if (result.has_evaluation()) result.mutable_evaluation()->set_worker(state.worker.name());
      MTMC_RETURN_IF_ERROR(Conclude(record.work, std::move(result), &state));
    }
  }
  if (state.lease == completed.lease_id()) state.lease.clear();
  std::erase(state.ahead, completed.lease_id());
  NoteAhead(state);
  return absl::OkStatus();
}

void LeaseManager::TakeFailure(FleetMember& state, store::LeaseRecord& record,
                               const v1::WorkerFailure& failure) {
  Log(LogLevel::kWarning, "worker could not do its work",
      {{"worker", state.worker.name()},
       {"reason", failure.reason()},
       {"message", failure.message()}});
  Task* task = queue_.Find(record.work);
  if (task != nullptr) {
    task->failed_on.insert(state.worker.name());
    // One in quarantine says what is wrong with itself, and takes nothing until it is well.
    if (!state.is_quarantined()) NoteFailure(*task, failure.message());
  }
  ++record.losses;
  Retry(record, task, "worker_lost", &state);
  metrics_.CountLostWorker("worker_failure");
}

void LeaseManager::NoteFailure(Task& task, const std::string& why) {
  const absl::Time now = clock_.Now();
  if (task.failures == 0) task.first_failure_time = now;
  ++task.failures;
  task.last_failure_time = now;
  task.last_failure = why;
  task.rest = task.failures == 1 ? options_.min_rest : std::min(2 * task.rest, options_.max_rest);
  // Said once, when it looks as if it would last.
  if (task.failures == options_.max_failures) task.TellFailing();
  if (task.failures >= options_.max_failures &&
      now - task.first_failure_time >= options_.max_failing) {
    queue_.GiveUp(task);
  }
}

absl::Status LeaseManager::TakeProgress(FleetMember& state, const std::string& lease) {
  store::LeaseRecord* const found = leases_.Find(lease);
  if (found == nullptr) return ConfirmOwnership(state);
  store::LeaseRecord& record = *found;
  if (!IsLeaseOf(record, state)) return NotYours(state.worker.name(), record);
  if (!record.is_lost) {
    if (state.lease != lease) state.Take(lease, clock_.Now());
    state.is_running = true;
    return absl::OkStatus();
  }
  // Given up for lost, and here it is: it goes on unless another has it.
  Task* task = queue_.Find(record.work);
  if (task == nullptr || !task->lease.empty() || !state.lease.empty()) return absl::OkStatus();
  record.is_lost = false;
  record.instance = state.instance;
  if (!Commit({.leases = {record}}, &state).ok()) {
    record.is_lost = true;
    return absl::OkStatus();
  }
  queue_.SetLease(*task, lease);
  state.Take(lease, clock_.Now());
  state.is_running = true;
  return absl::OkStatus();
}

// Its answer waits until a write has shown that this coordinator still owns the jobs.
absl::Status LeaseManager::ConfirmOwnership(FleetMember& state) { return Commit({}, &state); }

// Drops leases that nobody wants any more.
void LeaseManager::ForgetFinished(FleetMember& state) {
  if (!leases_.Contains(state.lease)) state.lease.clear();
  std::erase_if(state.ahead, [this](const std::string& lease) { return !leases_.Contains(lease); });
  NoteAhead(state);
}

// Leases that no search asks for. One may not have come back yet after a restart, for want of a
// store, or its job is paused; a job that has ended asks for nothing.
void LeaseManager::DropUnclaimed() {
  const absl::Time now = clock_.Now();
  if (unclaimed_.empty() || now < unclaimed_time_ + kUnclaimedEvery) return;
  if (now <= start_time_ + options_.interval + options_.grace) return;
  unclaimed_time_ = now;
  std::erase_if(unclaimed_, [this](const std::string& key) {
    const auto records = leases_.OfWork(key);
    const bool is_wanted =
        std::any_of(records.begin(), records.end(),
                    [this](const store::LeaseRecord* record) { return !HasEnded(record->job); });
    const bool is_dropped = !is_wanted && Commit({.finished_work = key}, nullptr).ok();
    if (is_dropped) leases_.ForgetWork(key);
    return is_dropped;
  });
}

// Whether nothing is asked for the job any more; false where the store cannot tell.
bool LeaseManager::HasEnded(const std::string& job) const {
  const absl::StatusOr<v1::Job::State> state = store_.LookupState(job);
  if (!state.ok()) return absl::IsNotFound(state.status());
  return search::HasEnded(*state);
}

void LeaseManager::Tick() {
  const absl::Time now = clock_.Now();
  std::vector<FleetMember*> expired;
  int live = 0;
  for (auto& [name, state] : workers_) {
    if (state.held && now >= state.held_until) AnswerHeld(state);
    if (state.is_live) ++live;
    if (now >= state.expires) expired.push_back(&state);
  }
  odds_.Advance(now, live);
  // All that were lost at once are known before any work is blamed for one.
  for (FleetMember* state : expired) {
    if (!std::exchange(state->is_live, false)) continue;
    odds_.CountLoss();
    NoteFleetChange();
  }
  for (FleetMember* state : expired) {
    state->expires = absl::InfiniteFuture();
    if (!state->lease.empty()) metrics_.CountExpiredLease();
    Lose(*state, "expired");
  }
  DropUnclaimed();
  // Given up only here, where no caller holds a reference to a task. One that cannot be
  // recorded is given up with the next tick.
  for (const std::string& key : queue_.Hopeless()) GiveUp(key).IgnoreError();
  // What the store refused, or has rested, is offered again.
  if (queue_.HasQueued() || !preparing_.empty()) {
    for (const auto& [name, state] : held_) newly_held_.insert(name);
  }
  Dispatch();
  TellStuck();
  TellFleetChange();
  ForgetWorkers();
  // Scrapes are seconds apart, and a fleet may be large.
  if (now - metrics_time_ >= kShownEvery) {
    metrics_time_ = now;
    ShowMetrics();
  }
}

}  // namespace mtmc::coordinator
