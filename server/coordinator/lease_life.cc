// SPDX-License-Identifier: Apache-2.0
//
// The life of a lease in LeaseManager: granted, perhaps ahead of its time; lost,
// taken back or tried again; concluded.
#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "server/coordinator/coordinator_metrics.h"
#include "server/coordinator/lease_manager.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

}  // namespace

absl::Status LeaseManager::Commit(store::Write write, FleetMember* told) {
  absl::Status status = store_.CommitTaking(write);
  if (status.ok() && told != nullptr) told->told_after = store_.newest_commit();
  // What is not written is tried again with every call of a worker; said once.
  if (!status.ok() && !waits_for_store_) {
    Log(LogLevel::kWarning, "the fleet waits for the store",
        {{"reason", rpc::ErrorReason(status)}, {"error", status}});
  }
  waits_for_store_ = !status.ok();
  return status;
}

void LeaseManager::Dispatch() {
  while (!newly_held_.empty()) {
    for (const std::string& name : std::exchange(newly_held_, {})) {
      const auto held = held_.find(name);
      if (held != held_.end()) Offer(*held->second);
    }
  }
  for (const std::string& key : queue_.TakeNewlyQueued()) OfferToHeld(key);
}

// To whoever waits and may do it, until it is granted. Whoever gets something waits no more.
void LeaseManager::OfferToHeld(const std::string& key) {
  for (auto at = held_.begin(); at != held_.end();) {
    const Task* task = queue_.Find(key);
    if (task == nullptr || task->shelves.empty()) return;
    if (!CanServe(*at->second, *task)) {
      ++at;
      continue;
    }
    const std::string name = at->first;
    Offer(*at->second);
    at = held_.upper_bound(name);
  }
}

// Whatever there is for a worker whose call is held.
void LeaseManager::Offer(FleetMember& state) {
  ForgetFinished(state);
  if (!state.lease.empty()) {
    // Granted by the last coordinator, and its answer was lost.
    if (HasTask(state.lease)) Tell(state, TakeHeld(state), LeaseResponse(state));
    return;
  }
  Task* task = NextTaskFor(state);
  if (task == nullptr && TakeOverFor(state)) task = NextTaskFor(state);
  if (task != nullptr) Grant(state, *task);
}

bool LeaseManager::CanServe(const FleetMember& state, const Task& task) const {
  if (!task.shelves.empty()) {
    return std::any_of(task.shelves.begin(), task.shelves.end(),
                       [&](const Shelf* shelf) { return state.CanServe(*shelf); });
  }
  return std::any_of(task.waiters.begin(), task.waiters.end(),
                     [&](const Task::Waiter& waiter) { return state.CanServe(waiter.demand); });
}

bool LeaseManager::IsGrantable(const FleetMember& state, const Task& task) const {
  if (task.is_given_up || !CanServe(state, task)) return false;
  const bool is_untried = !task.failed_on.contains(state.worker.name());
  // One worker may be at fault; what several cannot do is for all the same.
  if (is_untried && task.failures < options_.max_failures) return true;
  return !task.IsResting(clock_.Now()) && (is_untried || !HasOtherWorker(state, task));
}

Task* LeaseManager::NextTaskFor(const FleetMember& state) {
  if (!queue_.HasQueued()) return nullptr;
  return queue_.Next([&](const Shelf& shelf) { return state.CanServe(shelf); },
                     [&](const Task& task) { return IsGrantable(state, task); });
}

// Id of a new lease, which is in the store; nothing when the store cannot
// write: it is asked again with the next tick.
std::optional<std::string> LeaseManager::RecordGrant(FleetMember& state, Task& task,
                                                     bool is_ahead) {
  const v1::Lease& lease = task.work.lease;
  store::LeaseRecord record{.id = base::MakeResourceId("lease"),
                            .work = task.work.key,
                            .job = lease.job(),
                            .candidate = lease.candidate(),
                            .worker = state.worker.name(),
                            .instance = state.instance,
                            .identity = state.identity,
                            .losses = task.losses,
                            .crashes = task.crashes,
                            .is_ahead = is_ahead};
  if (!Commit({.leases = {record}}, &state).ok()) return std::nullopt;
  leases_.Put(record);
  queue_.SetLease(task, record.id);
  queue_.MarkServed(lease.job());
  // What was taken back before it was begun is charged already.
  if (task.charged == absl::ZeroDuration()) {
    task.charged = queue_.shares().Charge(task.project);
  }
  return record.id;
}

bool LeaseManager::HasBegun(const std::string& key) const {
  const Task* task = queue_.Find(key);
  return task != nullptr && !task->lease.empty() && !leases_.At(task->lease).is_ahead;
}

bool LeaseManager::Grant(FleetMember& state, Task& task) {
  const auto lease = RecordGrant(state, task, /*is_ahead=*/false);
  if (!lease) return false;
  state.Take(*lease, clock_.Now());
  Tell(state, TakeHeld(state), LeaseResponse(state));
  NoteBegun(task);
  return true;
}

void LeaseManager::NoteBegun(Task& task) {
  if (!task.was_granted) metrics_.CountGrant(clock_.Now() - task.submit_time);
  task.was_granted = true;
  task.TellGranted();
}

void LeaseManager::GrantAhead(FleetMember& state) {
  if (!queue_.HasQueued() || static_cast<int>(state.ahead.size()) >= state.most_ahead) return;
  std::vector<const FleetMember*> idle;
  for (const auto& [name, other] : workers_) {
    if (other.is_live && other.is_idle()) idle.push_back(&other);
  }
  // Only a program can be prepared; a problem is inspected by who is free.
  auto is_grantable = [&](const Task& candidate) {
    return candidate.work.lease.has_evaluation() && !candidate.is_suspect &&
           IsGrantable(state, candidate) &&
           std::none_of(idle.begin(), idle.end(),
                        [&](const FleetMember* other) { return IsGrantable(*other, candidate); });
  };
  const Task* current = queue_.Find(leases_.At(state.lease).work);
  if (current == nullptr || current->is_suspect) return;
  while (state.takes_work() && static_cast<int>(state.ahead.size()) < state.most_ahead) {
    Task* task =
        queue_.Next([&](const Shelf& shelf) { return state.CanServe(shelf); }, is_grantable);
    const auto lease = task ? RecordGrant(state, *task, /*is_ahead=*/true) : std::nullopt;
    if (!lease) return;
    state.ahead.push_back(*lease);
    NoteAhead(state);
  }
}

void LeaseManager::NoteAhead(FleetMember& state) {
  if (state.ahead.empty()) {
    preparing_.erase(state.worker.name());
  } else {
    preparing_[state.worker.name()] = &state;
  }
}

// The worker is free: the first that it holds ahead is its lease from now on.
absl::Status LeaseManager::BeginAhead(FleetMember& state) {
  if (!state.lease.empty() || state.ahead.empty()) return absl::OkStatus();
  store::LeaseRecord record = leases_.At(state.ahead.front());
  record.is_ahead = false;
  MTMC_RETURN_IF_ERROR(Commit({.leases = {record}}, &state));
  leases_.Put(record);
  state.Take(record.id, clock_.Now());
  state.ahead.pop_front();
  NoteAhead(state);
  if (Task* task = queue_.Find(record.work)) NoteBegun(*task);
  return absl::OkStatus();
}

// Whether it may still begin a lease that it holds ahead: it may be draining by now, have
// less isolation than before, or serve none of those who still wait.
bool LeaseManager::MayKeepAhead(const FleetMember& state, const std::string& lease) const {
  const store::LeaseRecord* found = leases_.Find(lease);
  if (!state.takes_work() || found == nullptr) return false;
  const Task* task = queue_.Find(found->work);
  return task == nullptr || CanServe(state, *task);
}

void LeaseManager::TakeBackUnfit(FleetMember& state) {
  const std::deque<std::string> held = state.ahead;
  for (const std::string& lease : held) {
    if (!MayKeepAhead(state, lease)) TakeBack(state, lease);
  }
}

// All that it holds ahead.
void LeaseManager::TakeBackAhead(FleetMember& state) {
  while (!state.ahead.empty()) TakeBack(state, std::string(state.ahead.back()));
}

// Puts work back into the queue that its worker has not begun, or has given back.
void LeaseManager::TakeBack(FleetMember& state, const std::string& lease) {
  std::erase(state.ahead, lease);
  NoteAhead(state);
  store::LeaseRecord* record = leases_.Find(lease);
  if (record == nullptr) return;
  record->is_lost = true;
  Task* task = queue_.Find(record->work);
  if (task != nullptr) queue_.Requeue(*task, record->id, clock_.Now());
  // What was not written comes back with the worker after a restart.
  Commit({.leases = {*record}}, &state).IgnoreError();
}

// The worker that has it does not go on with its work, and says so: no loss.
void LeaseManager::GiveBack(FleetMember& state) {
  const store::LeaseRecord* const record = leases_.Find(state.lease);
  if (record != nullptr && state.is_running) {
    Log(LogLevel::kInfo, "lease given back",
        {{"worker", state.worker.name()}, {"lease", state.lease}});
    metrics_.CountRetry("given_back");
    Task* task = queue_.Find(record->work);
    if (task != nullptr) SettleShare(state, *task);
  }
  TakeBack(state, std::exchange(state.lease, ""));
}

// Takes work that another worker holds ahead, and would begin last, back for `state`,
// which is idle. Returns whether there was any.
bool LeaseManager::TakeOverFor(const FleetMember& state) {
  FleetMember* holder = nullptr;
  std::string lease;
  for (const auto& [name, other] : preparing_) {
    if (other == &state) continue;
    if (holder && other->ahead.size() <= holder->ahead.size()) continue;
    const auto last = std::find_if(other->ahead.rbegin(), other->ahead.rend(), [&](const auto& id) {
      const store::LeaseRecord* found = leases_.Find(id);
      const Task* task = found == nullptr ? nullptr : queue_.Find(found->work);
      return task != nullptr && IsGrantable(state, *task);
    });
    if (last == other->ahead.rend()) continue;
    holder = other;
    lease = *last;
  }
  if (holder) TakeBack(*holder, lease);
  return holder != nullptr;
}

// The worker's process is gone, with all that it had.
void LeaseManager::Lose(FleetMember& state, const std::string& cause) {
  store::LeaseRecord* const found = leases_.Find(state.lease);
  if (found != nullptr && !found->is_lost) {
    metrics_.CountLostWorker(cause);
    Log(LogLevel::kWarning, "worker lost",
        {{"worker", found->worker}, {"cause", cause}, {"lease", state.lease}});
    ++found->losses;
    Task* task = queue_.Find(found->work);
    if (task != nullptr) {
      SettleShare(state, *task);
      Blame(state, *task);
    }
    Retry(*found, task, "worker_lost", &state);
  }
  state.lease.clear();
  SuspectAhead(state);
  TakeBackAhead(state);
}

// The work that a lost worker had is lost once more; perhaps it was the cause.
void LeaseManager::Blame(const FleetMember& state, Task& task) {
  task.is_suspect = true;
  task.failed_on.insert(state.worker.name());
  // One that never said that it began, or that prepared something else as well, proves
  // nothing.
  if (state.is_running && state.ahead.empty()) {
    // It was lost at some time before its next call.
    task.run_losses.push_back(
        {.time = clock_.Now(), .run = state.heard - state.begin + options_.interval});
  }
  if (static_cast<int>(task.run_losses.size()) < options_.max_losses ||
      odds_.ByChance(task.run_losses) > options_.max_odds) {
    return;
  }
  odds_.Discount(task.run_losses);
  queue_.GiveUp(task);
}

void LeaseManager::SuspectAhead(const FleetMember& state) {
  for (const std::string& lease : state.ahead) {
    const store::LeaseRecord* found = leases_.Find(lease);
    Task* task = found == nullptr ? nullptr : queue_.Find(found->work);
    if (task != nullptr) task->is_suspect = true;
  }
}

// Puts the work of a lease, whose counters were raised, back into the queue.
void LeaseManager::Retry(store::LeaseRecord& record, Task* task, const std::string& cause,
                         FleetMember* told) {
  record.is_lost = true;
  metrics_.CountRetry(cause);
  if (task != nullptr) {
    task->losses = std::max(task->losses, record.losses);
    task->crashes = std::max(task->crashes, record.crashes);
    if (task->losses >= options_.max_grants) queue_.GiveUp(*task);
    queue_.Requeue(*task, record.id, clock_.Now());
  }
  // What was not written is lost once more after a restart: one loss too few.
  Commit({.leases = {record}}, told).IgnoreError();
}

// The worker has done with the task's lease, if it is its own: what it took is what its
// project used.
void LeaseManager::SettleShare(const FleetMember& state, Task& task) {
  if (task.lease.empty() || state.lease != task.lease) return;
  // A result that could not be recorded comes twice.
  if (task.charged == absl::ZeroDuration()) return;
  queue_.shares().Settle(task.project, std::exchange(task.charged, {}), clock_.Now() - state.begin);
}

absl::Status LeaseManager::Conclude(std::string key, v1::LeaseResult result, FleetMember* told) {
  if (result.has_evaluation()) result.mutable_evaluation()->set_fingerprint(key);
  std::string candidate;
  for (const store::LeaseRecord* record : leases_.OfWork(key)) candidate = record->candidate;
  MTMC_RETURN_IF_ERROR(CommitEnd(key, result, candidate, told));
  leases_.ForgetWork(key);
  unclaimed_.erase(key);
  if (result.has_evaluation()) metrics_.CountEvaluation(result.evaluation());
  Task* task = queue_.Find(key);
  if (task == nullptr) return absl::OkStatus();
  const std::vector<Task::Waiter> waiters = std::move(task->waiters);
  queue_.Erase(key);
  for (size_t i = 0; i + 1 < waiters.size(); ++i) waiters[i].done(result);
  if (!waiters.empty()) waiters.back().done(std::move(result));
  return absl::OkStatus();
}

absl::Status LeaseManager::GiveUp(const std::string& key) {
  return Conclude(key, GivenUp(*queue_.Find(key)), nullptr);
}

absl::Status LeaseManager::CommitEnd(const std::string& key, const v1::LeaseResult& result,
                                     const std::string& candidate, FleetMember* told) {
  store::Write write{.finished_work = key};
  if (result.has_evaluation()) {
    write.evaluation = {
        .fingerprint = key, .candidate = candidate, .evaluation = result.evaluation()};
  }
  if (result.has_inspection()) write.inspection = {.key = key, .inspection = result.inspection()};
  return Commit(std::move(write), told);
}

bool LeaseManager::HasOtherWorker(const FleetMember& state, const Task& task) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return &entry.second != &state && CanServe(entry.second, task) &&
           !task.failed_on.contains(entry.first);
  });
}

}  // namespace mtmc::coordinator
