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

absl::Status LeaseManager::Commit(const store::Write& write) {
  absl::Status status = store_.Commit(write);
  // What is not written is tried again with every call of a worker; said once.
  if (!status.ok() && !waits_for_store_) {
    Log(LogLevel::kWarning, "the fleet waits for the store",
        {{"reason", rpc::ErrorReason(status)}, {"error", status}});
  }
  waits_for_store_ = !status.ok();
  return status;
}

void LeaseManager::Dispatch() {
  for (auto& [name, state] : workers_) {
    if (!state.held) continue;
    ForgetFinished(state);
    if (!state.lease.empty()) {
      // Granted by the last coordinator, and its answer was lost.
      if (HasTask(state.lease)) std::exchange(state.held, nullptr)(LeaseResponse(state));
      continue;
    }
    Task* task = NextTaskFor(state);
    if (task == nullptr) {
      TakeOverFor(state);
      task = NextTaskFor(state);
    }
    if (task != nullptr) Grant(state, *task);
  }
}

bool LeaseManager::CanServe(const FleetMember& state, const Task& task) const {
  return std::any_of(task.waiters.begin(), task.waiters.end(),
                     [&](const Task::Waiter& waiter) { return state.CanServe(waiter.demand); });
}

bool LeaseManager::IsGrantable(const FleetMember& state, const Task& task) const {
  return !task.is_given_up && CanServe(state, task) &&
         !(task.failed_on.contains(state.worker.name()) && HasOtherWorker(state, task));
}

Task* LeaseManager::NextTaskFor(const FleetMember& state) {
  return queue_.Next([&](const Task& task) { return IsGrantable(state, task); });
}

// Id of a new lease, which is in the store; nothing when the store cannot
// write: it is asked again with the next tick.
std::optional<std::string> LeaseManager::RecordGrant(const FleetMember& state, Task& task,
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
  if (!Commit({.leases = {record}}).ok()) return std::nullopt;
  leases_[record.id] = record;
  task.lease = record.id;
  queue_.MarkServed(lease.job());
  return record.id;
}

bool LeaseManager::HasBegun(const std::string& key) const {
  const Task* task = queue_.Find(key);
  return task != nullptr && !task->lease.empty() && !leases_.at(task->lease).is_ahead;
}

bool LeaseManager::Grant(FleetMember& state, Task& task) {
  const auto lease = RecordGrant(state, task, /*is_ahead=*/false);
  if (!lease) return false;
  state.Take(*lease, clock_.Now());
  std::exchange(state.held, nullptr)(LeaseResponse(state));
  NoteBegun(task);
  return true;
}

void LeaseManager::NoteBegun(Task& task) {
  if (!task.was_granted) metrics_.CountGrant(clock_.Now() - task.submit_time);
  task.was_granted = true;
  task.TellGranted();
}

void LeaseManager::GrantAhead(FleetMember& state) {
  // Only a program can be prepared; a problem is inspected by who is free.
  auto is_grantable = [&](const Task& candidate) {
    return candidate.work.lease.has_evaluation() && !candidate.is_suspect &&
           IsGrantable(state, candidate) &&
           std::none_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
             return entry.second.is_idle() && IsGrantable(entry.second, candidate);
           });
  };
  const Task* current = queue_.Find(leases_.at(state.lease).work);
  if (current == nullptr || current->is_suspect) return;
  while (state.takes_work() && static_cast<int>(state.ahead.size()) < state.most_ahead) {
    Task* task = queue_.Next(is_grantable);
    const auto lease = task ? RecordGrant(state, *task, /*is_ahead=*/true) : std::nullopt;
    if (!lease) return;
    state.ahead.push_back(*lease);
  }
}

// The worker is free: the first that it holds ahead is its lease from now on.
absl::Status LeaseManager::BeginAhead(FleetMember& state) {
  if (!state.lease.empty() || state.ahead.empty()) return absl::OkStatus();
  store::LeaseRecord record = leases_.at(state.ahead.front());
  record.is_ahead = false;
  MTMC_RETURN_IF_ERROR(Commit({.leases = {record}}));
  leases_[record.id] = record;
  state.Take(record.id, clock_.Now());
  state.ahead.pop_front();
  if (Task* task = queue_.Find(record.work)) NoteBegun(*task);
  return absl::OkStatus();
}

// Whether it may still begin a lease that it holds ahead: it may be draining by now, have
// less isolation than before, or serve none of those who still wait.
bool LeaseManager::MayKeepAhead(const FleetMember& state, const std::string& lease) const {
  const auto found = leases_.find(lease);
  if (!state.takes_work() || found == leases_.end()) return false;
  const Task* task = queue_.Find(found->second.work);
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

// Puts work that its worker has not begun back into the queue.
void LeaseManager::TakeBack(FleetMember& state, const std::string& lease) {
  std::erase(state.ahead, lease);
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  store::LeaseRecord& record = found->second;
  record.is_lost = true;
  Task* task = queue_.Find(record.work);
  if (task != nullptr) task->Requeue(record.id, clock_.Now());
  // What was not written comes back with the worker after a restart.
  Commit({.leases = {record}}).IgnoreError();
}

// Takes work that another worker holds ahead, and would begin last, back for `state`,
// which is idle.
void LeaseManager::TakeOverFor(const FleetMember& state) {
  FleetMember* holder = nullptr;
  std::string lease;
  for (auto& [name, other] : workers_) {
    if (&other == &state || (holder && other.ahead.size() <= holder->ahead.size())) continue;
    const auto last = std::find_if(other.ahead.rbegin(), other.ahead.rend(), [&](const auto& id) {
      const auto found = leases_.find(id);
      const Task* task = found == leases_.end() ? nullptr : queue_.Find(found->second.work);
      return task != nullptr && IsGrantable(state, *task);
    });
    if (last == other.ahead.rend()) continue;
    holder = &other;
    lease = *last;
  }
  if (holder) TakeBack(*holder, lease);
}

// The worker's process is gone, with all that it had.
void LeaseManager::Lose(FleetMember& state, const std::string& cause) {
  const auto found = leases_.find(state.lease);
  if (found != leases_.end() && !found->second.is_lost) {
    metrics_.CountLostWorker(cause);
    Log(LogLevel::kWarning, "worker lost",
        {{"worker", found->second.worker}, {"cause", cause}, {"lease", state.lease}});
    ++found->second.losses;
    Task* task = queue_.Find(found->second.work);
    if (task != nullptr) Blame(state, *task);
    Retry(found->second, task, "worker_lost");
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
  task.is_given_up = true;
}

void LeaseManager::SuspectAhead(const FleetMember& state) {
  for (const std::string& lease : state.ahead) {
    const auto found = leases_.find(lease);
    Task* task = found == leases_.end() ? nullptr : queue_.Find(found->second.work);
    if (task != nullptr) task->is_suspect = true;
  }
}

// Puts the work of a lease, whose counters were raised, back into the queue.
void LeaseManager::Retry(store::LeaseRecord& record, Task* task, const std::string& cause) {
  record.is_lost = true;
  metrics_.CountRetry(cause);
  if (task != nullptr) {
    task->losses = std::max(task->losses, record.losses);
    task->crashes = std::max(task->crashes, record.crashes);
    if (task->losses >= options_.max_grants) task->is_given_up = true;
    task->Requeue(record.id, clock_.Now());
  }
  // What was not written is lost once more after a restart: one loss too few.
  Commit({.leases = {record}}).IgnoreError();
}

absl::Status LeaseManager::Conclude(std::string key, v1::LeaseResult result) {
  if (result.has_evaluation()) result.mutable_evaluation()->set_fingerprint(key);
  std::string candidate;
  for (const auto& [id, record] : leases_) {
    if (record.work == key) candidate = record.candidate;
  }
  MTMC_RETURN_IF_ERROR(CommitEnd(key, result, candidate));
  ForgetLeases(key);
  if (result.has_evaluation()) metrics_.CountEvaluation(result.evaluation());
  Task* task = queue_.Find(key);
  if (task == nullptr) return absl::OkStatus();
  const std::vector<Task::Waiter> waiters = std::move(task->waiters);
  queue_.Erase(key);
  for (const Task::Waiter& waiter : waiters) waiter.done(result);
  return absl::OkStatus();
}

absl::Status LeaseManager::GiveUp(const std::string& key) {
  return Conclude(key, GivenUp(*queue_.Find(key)));
}

absl::Status LeaseManager::CommitEnd(const std::string& key, const v1::LeaseResult& result,
                                     const std::string& candidate) {
  store::Write write{.finished_work = key};
  if (result.has_evaluation()) {
    write.evaluation = {
        .fingerprint = key, .candidate = candidate, .evaluation = result.evaluation()};
  }
  if (result.has_inspection()) write.inspection = {.key = key, .inspection = result.inspection()};
  return Commit(write);
}

// Forgets the leases of finished or unwanted work; a worker that still has one
// is told to stop with its next call.
void LeaseManager::ForgetLeases(const std::string& key) {
  std::erase_if(leases_, [&](const auto& entry) { return entry.second.work == key; });
}

bool LeaseManager::HasOtherWorker(const FleetMember& state, const Task& task) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return &entry.second != &state && CanServe(entry.second, task) &&
           !task.failed_on.contains(entry.first);
  });
}

}  // namespace mtmc::coordinator
