// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/lease_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/version.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"
#include "server/coordinator/coordinator_metrics.h"
#include "server/search/fingerprint.h"

namespace mtmc::coordinator {
namespace {

using base::Log;
using base::LogLevel;

// A worker that only idles is written so often, for the time it was last heard.
constexpr absl::Duration kRememberInterval = absl::Minutes(1);
constexpr char kWorkerPrefix[] = "workers/";

google::protobuf::Timestamp ToProto(absl::Time time) {
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(time));
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(time));
}

bool HasDialect(const v1::DeviceFacts& device, v1::Dialect dialect) {
  return std::find(device.dialects().begin(), device.dialects().end(), dialect) !=
         device.dialects().end();
}

bool Selects(const v1::WorkerSelector& selector, const v1::Worker& worker) {
  return (selector.product().empty() || selector.product() == worker.device().product()) &&
         (selector.worker().empty() || selector.worker() == worker.name());
}

// Its device failed the canary; the worker says so until one passes.
bool IsQuarantined(const v1::Worker& worker) { return !worker.quarantine_reason().empty(); }

absl::Status WorkerNotFound(const std::string& name) {
  return rpc::MakeError(absl::StatusCode::kNotFound, "WORKER_NOT_FOUND",
                        absl::StrCat("worker \"", name, "\" has not been heard of"),
                        {{"worker", name}});
}

absl::Status Replaced(const std::string& name) {
  return rpc::MakeError(
      absl::StatusCode::kFailedPrecondition, "WORKER_REPLACED",
      absl::StrCat("a newer process calls itself \"", name, "\"; give each worker its own --name"),
      {{"worker", name}});
}

void LogQuarantine(const v1::Worker& before, const v1::Worker& now) {
  if (IsQuarantined(before) == IsQuarantined(now)) return;
  if (IsQuarantined(now)) {
    Log(LogLevel::kWarning, "worker quarantined",
        {{"worker", now.name()}, {"reason", now.quarantine_reason()}});
  } else {
    Log(LogLevel::kInfo, "worker back from quarantine", {{"worker", now.name()}});
  }
}

// The result of work that nobody could do.
v1::LeaseResult GivenUp(const search::Work& work, int losses, const std::string& last_failure) {
  v1::LeaseResult result;
  const std::string message = absl::StrCat("worker lost ", losses, " times",
                                           last_failure.empty() ? "" : ": ", last_failure);
  if (work.lease.has_evaluation()) {
    auto* failure = result.mutable_evaluation()->mutable_failure();
    failure->set_kind(v1::Failure::KIND_CRASH);
    failure->set_stage(v1::STAGE_VERIFY);
    failure->set_message(message);
  } else {
    result.mutable_problem_failure()->set_reason("WORKER_LOST");
    result.mutable_problem_failure()->set_message(
        absl::StrCat(message, "; look at the worker's log for what the reference does to it"));
  }
  return result;
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
    WorkerState& state = workers_[record.worker.name()];
    state.worker = record.worker;
    state.is_draining = record.is_draining;
    state.written = start_time_;
  }
  for (const store::LeaseRecord& record : fleet.leases) {
    leases_[record.id] = record;
    if (record.is_lost) continue;
    // Its worker has not been told that the coordinator was away; it gets the
    // same time to call as if it had just been granted.
    WorkerState& state = workers_[record.worker];
    state.worker.set_name(record.worker);
    state.instance = record.instance;
    state.lease = record.id;
    state.expires = start_time_ + options_.interval + options_.grace;
  }
}

std::optional<search::DeviceChoice> LeaseManager::FindDevice(const v1::Job& job) {
  std::optional<search::DeviceChoice> best;
  int best_rank = -1;
  for (const auto& [name, state] : workers_) {
    if (!state.is_live || state.is_draining || state.is_leaving) continue;
    if (IsQuarantined(state.worker)) continue;
    if (!Selects(job.worker_selector(), state.worker)) continue;
    v1::Dialect dialect = job.dialect();
    const bool has_cuda = HasDialect(state.worker.device(), v1::DIALECT_CUDA);
    if (dialect == v1::DIALECT_UNSPECIFIED) {
      dialect = has_cuda ? v1::DIALECT_CUDA : v1::DIALECT_OPENCL;
    }
    if (!HasDialect(state.worker.device(), dialect)) continue;
    const int rank = (dialect == v1::DIALECT_CUDA ? 2 : 0) + (state.lease.empty() ? 1 : 0);
    if (rank <= best_rank) continue;
    best_rank = rank;
    best = {.device = state.worker.device(), .dialect = dialect};
  }
  return best;
}

void LeaseManager::Submit(search::Work work, search::Done<v1::LeaseResult> done) {
  const std::string key = work.key;
  Waiter waiter{.job = work.lease.job(), .granted = work.granted, .done = std::move(done)};
  const auto [found, is_new] = tasks_.try_emplace(key);
  Task& task = found->second;
  task.waiters.push_back(std::move(waiter));
  if (is_new) {
    task.work = std::move(work);
    task.order = next_order_++;
    task.submit_time = clock_.Now();
    for (const auto& [id, record] : leases_) {
      if (record.work != key) continue;
      task.losses = std::max(task.losses, record.losses);
      task.crashes = std::max(task.crashes, record.crashes);
      if (!record.is_lost) task.lease = id;
    }
  }
  if (!task.lease.empty() && task.waiters.back().granted) task.waiters.back().granted();
  Dispatch();
}

void LeaseManager::Abandon(const std::string& key, const std::string& job) {
  const auto found = tasks_.find(key);
  if (found == tasks_.end()) return;
  std::erase_if(found->second.waiters, [&](const Waiter& waiter) { return waiter.job == job; });
  if (!found->second.waiters.empty()) return;
  tasks_.erase(found);
  ForgetLeases(key);
  // A row that stays behind is dropped when the next coordinator finds that
  // nobody wants it.
  const absl::Status status = store_.Commit({.finished_work = key});
  if (!status.ok()) Log(LogLevel::kWarning, "lease not removed", {{"error", status}});
}

void LeaseManager::Synchronize(const v1::SynchronizeRequest& request, Reply reply) {
  absl::StatusOr<WorkerState*> admitted = Admit(request);
  if (!admitted.ok()) return reply(admitted.status());
  WorkerState& state = **admitted;
  if (request.has_completed()) {
    const absl::Status status = TakeResult(state, request.completed());
    if (!status.ok()) return reply(status);
  } else if (request.has_executing()) {
    TakeProgress(state, request.executing().lease_id());
  } else if (IsQuarantined(state.worker) && !state.lease.empty()) {
    // Granted before the canary failed, and not begun.
    Lose(std::exchange(state.lease, ""), "quarantined");
  }
  Remember(state);
  Answer(state, request.has_executing(), std::move(reply));
  Dispatch();
  // A result is acknowledged at once; the worker then waits with its next call.
  if (request.has_completed() && state.held)
    std::exchange(state.held, nullptr)(IdleResponse(state));
}

absl::StatusOr<LeaseManager::WorkerState*> LeaseManager::Admit(
    const v1::SynchronizeRequest& request) {
  const std::string& name = request.worker().name();
  if (!absl::StartsWith(name, kWorkerPrefix) ||
      !base::IsResourceId(name.substr(sizeof(kWorkerPrefix) - 1))) {
    return rpc::MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                          absl::StrCat("worker name \"", name,
                                       "\" must be workers/ and lower-case letters, digits and -"));
  }
  if (!config::IsCompatibleVersion(request.worker().version())) {
    return rpc::MakeError(absl::StatusCode::kFailedPrecondition, "VERSION_MISMATCH",
                          absl::StrCat("worker ", name, " has version ", request.worker().version(),
                                       ", the coordinator ", std::string(config::Version()),
                                       "; install the same version on both"),
                          {{"worker_version", request.worker().version()},
                           {"coordinator_version", std::string(config::Version())}});
  }
  WorkerState& state = workers_[name];
  if (state.replaced.contains(request.instance_id())) return Replaced(name);
  if (state.instance != request.instance_id()) {
    if (state.held) std::exchange(state.held, nullptr)(Replaced(name));
    if (!state.instance.empty()) state.replaced.insert(state.instance);
    if (!state.lease.empty()) Lose(std::exchange(state.lease, ""), "restarted");
    state.instance = request.instance_id();
    state.written = absl::InfinitePast();
  }
  // A second call of one process: the first one's client has given up on it.
  if (state.held) std::exchange(state.held, nullptr)(IdleResponse(state));
  LogQuarantine(state.worker, request.worker());
  state.worker = request.worker();
  state.is_live = true;
  state.is_leaving = request.is_leaving();
  *state.worker.mutable_synchronize_time() = ToProto(clock_.Now());
  return &state;
}

absl::Status LeaseManager::TakeResult(WorkerState& state,
                                      const v1::SynchronizeRequest::Completed& completed) {
  const auto found = leases_.find(completed.lease_id());
  if (found != leases_.end()) {
    store::LeaseRecord& record = found->second;
    const auto task_found = tasks_.find(record.work);
    Task* task = task_found == tasks_.end() ? nullptr : &task_found->second;
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
        }
        ++record.losses;
        MTMC_RETURN_IF_ERROR(Retry(record, task, "worker_lost"));
        metrics_.CountLostWorker("worker_failure");
      }
    } else if (is_crash && !record.is_lost && record.crashes + 1 < options_.max_crashes) {
      ++record.crashes;
      MTMC_RETURN_IF_ERROR(Retry(record, task, "candidate_failed"));
    } else {
      if (result.has_evaluation()) result.mutable_evaluation()->set_worker(state.worker.name());
      MTMC_RETURN_IF_ERROR(Conclude(record.work, result));
    }
  }
  if (state.lease == completed.lease_id()) state.lease.clear();
  return absl::OkStatus();
}

void LeaseManager::TakeProgress(WorkerState& state, const std::string& lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  store::LeaseRecord& record = found->second;
  if (!record.is_lost) {
    if (record.worker == state.worker.name()) state.lease = lease;
    return;
  }
  // Given up for lost, and here it is: it goes on unless another has it.
  const auto task = tasks_.find(record.work);
  if (task == tasks_.end() || !task->second.lease.empty() || !state.lease.empty()) return;
  record.is_lost = false;
  record.instance = state.instance;
  if (!store_.Commit({.leases = {record}}).ok()) {
    record.is_lost = true;
    return;
  }
  task->second.lease = lease;
  state.lease = lease;
}

void LeaseManager::Answer(WorkerState& state, bool is_executing, Reply reply) {
  const absl::Time now = clock_.Now();
  if (!state.lease.empty() && !leases_.contains(state.lease)) state.lease.clear();
  if (!state.lease.empty() && (is_executing || HasTask(state))) return reply(LeaseResponse(state));
  // One that works on what nobody wants is told to stop at once, not held.
  const bool takes_work = !is_executing && !state.is_draining && !state.is_leaving &&
                          !IsQuarantined(state.worker);
  if (!takes_work) {
    reply(IdleResponse(state));
    if (state.is_leaving) state.is_live = false;
    return;
  }
  state.held = std::move(reply);
  state.held_until = now + options_.hold;
  state.expires = state.held_until + options_.grace;
}

void LeaseManager::Remember(WorkerState& state) {
  const absl::Time now = clock_.Now();
  if (now - state.written < kRememberInterval) return;
  const absl::Status status =
      store_.Commit({.workers = {{.worker = state.worker, .is_draining = state.is_draining}}});
  if (status.ok()) state.written = now;
}

void LeaseManager::Disconnect(const std::string& worker, const std::string& instance) {
  const auto found = workers_.find(worker);
  if (found == workers_.end() || found->second.instance != instance) return;
  found->second.held = nullptr;
  if (found->second.lease.empty()) found->second.expires = clock_.Now() + options_.grace;
}

void LeaseManager::Tick() {
  const absl::Time now = clock_.Now();
  for (auto& [name, state] : workers_) {
    if (state.held && now >= state.held_until) {
      std::exchange(state.held, nullptr)(IdleResponse(state));
    }
    if (now < state.expires) continue;
    state.expires = absl::InfiniteFuture();
    state.is_live = false;
    if (state.lease.empty()) continue;
    metrics_.CountExpiredLease();
    Lose(std::exchange(state.lease, ""), "expired");
  }
  // Leases of the last coordinator that no search has asked for.
  if (now > start_time_ + options_.interval + options_.grace) {
    std::set<std::string> unwanted;
    for (const auto& [id, record] : leases_) {
      if (!tasks_.contains(record.work)) unwanted.insert(record.work);
    }
    for (const std::string& key : unwanted) {
      if (store_.Commit({.finished_work = key}).ok()) ForgetLeases(key);
    }
  }
  // Given up only here, where no caller holds a reference to a task.
  std::vector<std::string> hopeless;
  for (const auto& [key, task] : tasks_) {
    if (task.lease.empty() && task.losses >= options_.max_losses) hopeless.push_back(key);
  }
  for (const std::string& key : hopeless) {
    const absl::Status status = GiveUp(key);
    if (!status.ok()) Log(LogLevel::kWarning, "result not recorded", {{"error", status}});
  }
  Dispatch();
  ShowMetrics();
}

void LeaseManager::ReleaseHeld() {
  for (auto& [name, state] : workers_) {
    if (!state.held) continue;
    std::exchange(state.held,
                  nullptr)(rpc::MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                                          "the coordinator stops; call again until it is back"));
  }
}

void LeaseManager::Dispatch() {
  for (auto& [name, state] : workers_) {
    if (!state.held) continue;
    if (!state.lease.empty() && !leases_.contains(state.lease)) state.lease.clear();
    if (!state.lease.empty()) {
      // Granted by the last coordinator, and its answer was lost.
      if (HasTask(state)) std::exchange(state.held, nullptr)(LeaseResponse(state));
      continue;
    }
    Task* task = NextTaskFor(state);
    if (task != nullptr) Grant(state, *task);
  }
}

LeaseManager::Task* LeaseManager::NextTaskFor(const WorkerState& state) {
  Task* best = nullptr;
  auto rank = [this](const Task& task) {
    const auto served = served_.find(task.work.lease.job());
    return std::make_pair(served == served_.end() ? 0 : served->second, task.order);
  };
  for (auto& [key, task] : tasks_) {
    if (!task.lease.empty() || task.losses >= options_.max_losses) continue;
    if (!CanServe(state, task)) continue;
    if (task.failed_on.contains(state.worker.name()) && HasOtherWorker(state, task)) continue;
    if (best == nullptr || rank(task) < rank(*best)) best = &task;
  }
  return best;
}

bool LeaseManager::Grant(WorkerState& state, Task& task) {
  const v1::Lease& lease = task.work.lease;
  store::LeaseRecord record{.id = base::MakeResourceId("lease"),
                            .work = task.work.key,
                            .job = lease.job(),
                            .candidate = lease.candidate(),
                            .worker = state.worker.name(),
                            .instance = state.instance,
                            .losses = task.losses,
                            .crashes = task.crashes};
  // A store that cannot write is asked again with the next tick.
  if (!store_.Commit({.leases = {record}}).ok()) return false;
  leases_[record.id] = record;
  task.lease = record.id;
  state.lease = record.id;
  served_[lease.job()] = next_order_++;
  if (!task.was_granted) metrics_.CountGrant(clock_.Now() - task.submit_time);
  task.was_granted = true;
  std::exchange(state.held, nullptr)(LeaseResponse(state));
  for (const Waiter& waiter : task.waiters) {
    if (waiter.granted) waiter.granted();
  }
  return true;
}

void LeaseManager::Lose(const std::string& lease, const std::string& cause) {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || found->second.is_lost) return;
  metrics_.CountLostWorker(cause);
  Log(LogLevel::kWarning, "worker lost",
      {{"worker", found->second.worker}, {"cause", cause}, {"lease", lease}});
  const auto task = tasks_.find(found->second.work);
  ++found->second.losses;
  const absl::Status status =
      Retry(found->second, task == tasks_.end() ? nullptr : &task->second, "worker_lost");
  // What was not written is lost once more after a restart: one loss too few.
  if (!status.ok()) Log(LogLevel::kWarning, "loss not recorded", {{"error", status}});
}

// Puts the work of a lease, whose counters were raised, back into the queue.
absl::Status LeaseManager::Retry(store::LeaseRecord& record, Task* task, const std::string& cause) {
  record.is_lost = true;
  metrics_.CountRetry(cause);
  if (task != nullptr) {
    task->losses = std::max(task->losses, record.losses);
    task->crashes = std::max(task->crashes, record.crashes);
    if (task->lease == record.id) task->lease.clear();
  }
  return store_.Commit({.leases = {record}});
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
  const auto found = tasks_.find(key);
  if (found == tasks_.end()) return absl::OkStatus();
  const std::vector<Waiter> waiters = std::move(found->second.waiters);
  tasks_.erase(found);
  for (const Waiter& waiter : waiters) waiter.done(result);
  return absl::OkStatus();
}

absl::Status LeaseManager::GiveUp(std::string key) {
  const Task& task = tasks_.at(key);
  return Conclude(key, GivenUp(task.work, task.losses, task.last_failure));
}

absl::Status LeaseManager::CommitEnd(const std::string& key, const v1::LeaseResult& result,
                                     const std::string& candidate) {
  store::Write write{.finished_work = key};
  if (result.has_evaluation()) {
    write.evaluation = {
        .fingerprint = key, .candidate = candidate, .evaluation = result.evaluation()};
  }
  if (result.has_inspection()) write.inspection = {.key = key, .inspection = result.inspection()};
  return store_.Commit(write);
}

// Forgets the leases of finished or unwanted work; a worker that still has one
// is told to stop with its next call.
void LeaseManager::ForgetLeases(const std::string& key) {
  std::erase_if(leases_, [&](const auto& entry) { return entry.second.work == key; });
}

bool LeaseManager::CanServe(const WorkerState& state, const Task& task) const {
  return state.is_live && !state.is_draining && !state.is_leaving &&
         !IsQuarantined(state.worker) &&
         Selects(task.work.selector, state.worker) &&
         HasDialect(state.worker.device(), task.work.dialect) &&
         search::DeviceClass(state.worker.device()) == task.work.device_class;
}

bool LeaseManager::HasTask(const WorkerState& state) const {
  return tasks_.contains(leases_.at(state.lease).work);
}

bool LeaseManager::HasOtherWorker(const WorkerState& state, const Task& task) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return &entry.second != &state && CanServe(entry.second, task) &&
           !task.failed_on.contains(entry.first);
  });
}

v1::SynchronizeResponse LeaseManager::LeaseResponse(WorkerState& state) {
  const absl::Time next = clock_.Now() + options_.interval;
  state.expires = next + options_.grace;
  const store::LeaseRecord& record = leases_.at(state.lease);
  v1::SynchronizeResponse response;
  *response.mutable_next_synchronization_time() = ToProto(next);
  response.set_is_draining(state.is_draining);
  // Without its work while the search has not come back after a restart: the
  // worker has it.
  const auto task = tasks_.find(record.work);
  if (task != tasks_.end()) *response.mutable_lease() = task->second.work.lease;
  response.mutable_lease()->set_id(record.id);
  response.mutable_lease()->set_job(record.job);
  response.mutable_lease()->set_candidate(record.candidate);
  response.mutable_lease()->set_attempt(record.losses);
  return response;
}

v1::SynchronizeResponse LeaseManager::IdleResponse(WorkerState& state) {
  // A worker that may work calls again at once and is held; another one has no
  // reason to hurry.
  const bool is_waiting =
      !state.is_draining && !state.is_leaving && !IsQuarantined(state.worker);
  const absl::Time next = clock_.Now() + (is_waiting ? absl::ZeroDuration() : options_.interval);
  state.expires = next + options_.grace;
  v1::SynchronizeResponse response;
  *response.mutable_next_synchronization_time() = ToProto(next);
  response.mutable_idle();
  response.set_is_draining(state.is_draining);
  return response;
}

v1::Worker LeaseManager::Describe(const WorkerState& state) const {
  v1::Worker worker = state.worker;
  const auto lease = leases_.find(state.lease);
  const bool has_lease = lease != leases_.end();
  if (has_lease) {
    worker.set_activity(lease->second.candidate.empty() ? lease->second.job
                                                        : lease->second.candidate);
  }
  if (!state.is_live) {
    worker.set_state(v1::Worker::STATE_LOST);
  } else if (state.is_draining || state.is_leaving) {
    worker.set_state(v1::Worker::STATE_DRAINING);
  } else if (IsQuarantined(worker)) {
    worker.set_state(v1::Worker::STATE_QUARANTINED);
  } else {
    worker.set_state(has_lease ? v1::Worker::STATE_RUNNING : v1::Worker::STATE_IDLE);
  }
  return worker;
}

std::vector<v1::Worker> LeaseManager::ListWorkers() const {
  std::vector<v1::Worker> workers;
  for (const auto& [name, state] : workers_) {
    if (clock_.Now() - FromProto(state.worker.synchronize_time()) > options_.memory) continue;
    workers.push_back(Describe(state));
  }
  return workers;
}

absl::StatusOr<v1::Worker> LeaseManager::LookupWorker(const std::string& name) const {
  const auto found = workers_.find(name);
  if (found == workers_.end()) return WorkerNotFound(name);
  return Describe(found->second);
}

absl::StatusOr<v1::Worker> LeaseManager::SetDraining(const std::string& name, bool is_draining) {
  const auto found = workers_.find(name);
  if (found == workers_.end()) return WorkerNotFound(name);
  WorkerState& state = found->second;
  MTMC_RETURN_IF_ERROR(
      store_.Commit({.workers = {{.worker = state.worker, .is_draining = is_draining}}}));
  state.is_draining = is_draining;
  if (state.held) std::exchange(state.held, nullptr)(IdleResponse(state));
  return Describe(state);
}

void LeaseManager::ShowMetrics() {
  CoordinatorMetrics::Counts workers;
  for (const auto& [name, state] : workers_) {
    const std::string enumerator = v1::Worker::State_Name(Describe(state).state());
    ++workers[{enumerator.substr(sizeof("STATE_") - 1), state.worker.device().product()}];
  }
  metrics_.ShowWorkers(workers);
  CoordinatorMetrics::Counts queue;
  for (const auto& [key, task] : tasks_) {
    if (!task.lease.empty()) continue;
    ++queue[{task.work.lease.has_evaluation() ? "evaluation" : "inspection",
             task.work.selector.product()}];
  }
  metrics_.ShowQueue(queue);
}

}  // namespace mtmc::coordinator
