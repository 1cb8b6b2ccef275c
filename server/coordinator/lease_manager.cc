// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/lease_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"
#include "server/coordinator/coordinator_metrics.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

// Between two counts of workers and queue for the metrics.
constexpr absl::Duration kShownEvery = absl::Seconds(1);

google::protobuf::Timestamp ToProto(absl::Time time) {
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(time));
}

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
    leases_[record.id] = record;
    if (record.is_lost) continue;
    // Its worker has not been told that the coordinator was away; it gets the
    // same time to call as if it had just been granted.
    FleetMember& state = workers_[record.worker];
    state.worker.set_name(record.worker);
    state.instance = record.instance;
    if (record.is_ahead) {
      state.ahead.push_back(record.id);
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
  bool has_begun = !task.lease.empty() && !leases_.at(task.lease).is_ahead;
  if (is_new) {
    for (const auto& [id, record] : leases_) {
      if (record.work != task.work.key) continue;
      task.losses = std::max(task.losses, record.losses);
      task.crashes = std::max(task.crashes, record.crashes);
      if (record.is_lost) continue;
      task.lease = id;
      has_begun = !record.is_ahead;
    }
    // Of what was lost before a restart only the number is known.
    task.is_suspect = task.losses > 0;
    task.is_given_up = task.losses >= options_.max_grants;
  }
  if (has_begun && task.waiters.back().granted) task.waiters.back().granted();
  Dispatch();
}

void LeaseManager::Abandon(const std::string& key, const std::string& job) {
  Task* task = queue_.Find(key);
  if (task == nullptr) return;
  std::erase_if(task->waiters, [&](const Task::Waiter& waiter) { return waiter.job == job; });
  if (!task->waiters.empty()) return;
  queue_.Erase(key);
  ForgetLeases(key);
  // A row that stays behind is dropped when the next coordinator finds that
  // nobody wants it.
  Commit({.finished_work = key}).IgnoreError();
}

void LeaseManager::Synchronize(const v1::SynchronizeRequest& request, const std::string& identity,
                               Reply reply) {
  absl::StatusOr<FleetMember*> admitted = Admit(request, identity);
  if (!admitted.ok()) return reply(admitted.status());
  FleetMember& state = **admitted;
  if (request.has_completed()) {
    const absl::Status status = TakeResult(state, request.completed());
    if (!status.ok()) return reply(status);
  } else if (request.has_executing()) {
    const absl::Status status = TakeProgress(state, request.executing().lease_id());
    if (!status.ok()) return reply(status);
  } else if (state.is_quarantined() && !state.lease.empty()) {
    // Granted before the canary failed, and not begun.
    TakeBack(state, std::exchange(state.lease, ""));
  }
  ForgetFinished(state);
  TakeBackUnfit(state);
  if (!request.has_executing()) {
    const absl::Status status = BeginAhead(state);
    if (!status.ok()) return reply(status);
  }
  Remember(state);
  Answer(state, request.has_executing(), std::move(reply));
  Dispatch();
  // A result is acknowledged at once; the worker then waits with its next call.
  if (request.has_completed() && state.held)
    std::exchange(state.held, nullptr)(IdleResponse(state));
}

absl::Status LeaseManager::TakeResult(FleetMember& state,
                                      const v1::SynchronizeRequest::Completed& completed) {
  const auto found = leases_.find(completed.lease_id());
  if (found != leases_.end()) {
    store::LeaseRecord& record = found->second;
    if (!IsLeaseOf(record, state)) return NotYours(state.worker.name(), record);
    Task* task = queue_.Find(record.work);
    v1::LeaseResult result = completed.result();
    const bool is_failed =
        result.has_worker_failure() || !FitsWork(result, !record.candidate.empty());
    const bool is_crash = result.evaluation().failure().kind() == v1::Failure::KIND_CRASH;
    if (is_failed) {
      if (!record.is_lost) {
        Log(LogLevel::kWarning, "worker could not do its work",
            {{"worker", state.worker.name()},
             {"reason", result.worker_failure().reason()},
             {"message", result.worker_failure().message()}});
        if (task != nullptr) {
          task->failed_on.insert(state.worker.name());
          task->last_failure = result.worker_failure().message();
          task->is_given_up = ++task->failures >= options_.max_failures;
        }
        ++record.losses;
        Retry(record, task, "worker_lost");
        metrics_.CountLostWorker("worker_failure");
      }
    } else if (is_crash && !record.is_lost && record.crashes + 1 < options_.max_crashes) {
      ++record.crashes;
      Retry(record, task, "candidate_failed");
    } else {
      if (result.has_evaluation()) result.mutable_evaluation()->set_worker(state.worker.name());
      MTMC_RETURN_IF_ERROR(Conclude(record.work, result));
    }
  }
  if (state.lease == completed.lease_id()) state.lease.clear();
  std::erase(state.ahead, completed.lease_id());
  return absl::OkStatus();
}

absl::Status LeaseManager::TakeProgress(FleetMember& state, const std::string& lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return absl::OkStatus();
  store::LeaseRecord& record = found->second;
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
  if (!Commit({.leases = {record}}).ok()) {
    record.is_lost = true;
    return absl::OkStatus();
  }
  task->lease = lease;
  state.Take(lease, clock_.Now());
  state.is_running = true;
  return absl::OkStatus();
}

// Drops leases that nobody wants any more.
void LeaseManager::ForgetFinished(FleetMember& state) {
  if (!leases_.contains(state.lease)) state.lease.clear();
  std::erase_if(state.ahead, [this](const std::string& lease) { return !leases_.contains(lease); });
}

void LeaseManager::Answer(FleetMember& state, bool is_executing, Reply reply) {
  const absl::Time now = clock_.Now();
  if (!state.lease.empty() && (is_executing || HasTask(state.lease))) {
    if (is_executing) GrantAhead(state);
    return reply(LeaseResponse(state));
  }
  // One that works on what nobody wants is told to stop at once, not held.
  const bool takes_work = !is_executing && state.takes_work();
  if (!takes_work) {
    reply(IdleResponse(state));
    if (state.is_leaving) state.Leave();
    return;
  }
  state.held = std::move(reply);
  state.held_until = now + options_.hold;
  state.expires = state.held_until + options_.grace;
}

void LeaseManager::Tick() {
  const absl::Time now = clock_.Now();
  std::vector<FleetMember*> expired;
  int live = 0;
  for (auto& [name, state] : workers_) {
    if (state.held && now >= state.held_until) {
      std::exchange(state.held, nullptr)(IdleResponse(state));
    }
    if (state.is_live) ++live;
    if (now >= state.expires) expired.push_back(&state);
  }
  odds_.Advance(now, live);
  // All that were lost at once are known before any work is blamed for one.
  for (FleetMember* state : expired) {
    if (std::exchange(state->is_live, false)) odds_.CountLoss();
  }
  for (FleetMember* state : expired) {
    state->expires = absl::InfiniteFuture();
    if (!state->lease.empty()) metrics_.CountExpiredLease();
    Lose(*state, "expired");
  }
  // Leases of the last coordinator that no search has asked for.
  if (now > start_time_ + options_.interval + options_.grace) {
    std::set<std::string> unwanted;
    for (const auto& [id, record] : leases_) {
      if (queue_.Find(record.work) == nullptr) unwanted.insert(record.work);
    }
    for (const std::string& key : unwanted) {
      if (Commit({.finished_work = key}).ok()) ForgetLeases(key);
    }
  }
  // Given up only here, where no caller holds a reference to a task.
  std::vector<std::string> hopeless;
  for (const auto& [key, task] : queue_.tasks()) {
    if (task.lease.empty() && task.is_given_up) hopeless.push_back(key);
  }
  // One that cannot be recorded is given up with the next tick.
  for (const std::string& key : hopeless) GiveUp(key).IgnoreError();
  Dispatch();
  TellStuck();
  // Scrapes are seconds apart, and a fleet may be large.
  if (now - metrics_time_ >= kShownEvery) {
    metrics_time_ = now;
    ShowMetrics();
  }
}

void LeaseManager::ReleaseHeld() {
  for (auto& [name, state] : workers_) {
    if (!state.held) continue;
    std::exchange(state.held,
                  nullptr)(rpc::MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                                          "the coordinator stops; call again until it is back"));
  }
}

bool LeaseManager::HasTask(const std::string& lease) const {
  return queue_.Find(leases_.at(lease).work) != nullptr;
}

// Without its work while the search has not come back after a restart: the
// worker has it.
v1::Lease LeaseManager::LeaseOf(const store::LeaseRecord& record) const {
  v1::Lease lease;
  const Task* task = queue_.Find(record.work);
  if (task != nullptr) lease = task->MakeLease();
  lease.set_id(record.id);
  lease.set_job(record.job);
  lease.set_candidate(record.candidate);
  lease.set_attempt(record.losses);
  return lease;
}

v1::SynchronizeResponse LeaseManager::LeaseResponse(FleetMember& state) {
  const absl::Time next = clock_.Now() + options_.interval;
  state.expires = next + options_.grace;
  v1::SynchronizeResponse response;
  *response.mutable_next_synchronization_time() = ToProto(next);
  response.set_is_draining(state.is_draining);
  *response.mutable_lease() = LeaseOf(leases_.at(state.lease));
  for (const std::string& lease : state.ahead) {
    *response.add_prefetches() = LeaseOf(leases_.at(lease));
  }
  return response;
}

v1::SynchronizeResponse LeaseManager::IdleResponse(FleetMember& state) {
  // A worker that may work calls again at once and is held; another one has no
  // reason to hurry.
  const absl::Time next =
      clock_.Now() + (state.takes_work() ? absl::ZeroDuration() : options_.interval);
  state.expires = next + options_.grace;
  v1::SynchronizeResponse response;
  *response.mutable_next_synchronization_time() = ToProto(next);
  response.mutable_idle();
  response.set_is_draining(state.is_draining);
  return response;
}

}  // namespace mtmc::coordinator
