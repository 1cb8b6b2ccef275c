// SPDX-License-Identifier: Apache-2.0
//
// The fleet as LeaseManager shows it: a device for a job, who waits and why, the
// workers by name.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/enum_word.h"
#include "common/base/status_macros.h"
#include "common/fleet/device_class.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"
#include "server/coordinator/coordinator_metrics.h"
#include "server/coordinator/lease_manager.h"

namespace mtmc::coordinator {
namespace {

// How soon it is seen that nobody may do a task, long before its search hears of it.
constexpr absl::Duration kStuckInterval = absl::Seconds(1);

// Between two times that those who wait for a change of the fleet are told.
constexpr absl::Duration kFleetInterval = absl::Milliseconds(500);

// Between two looks for workers that are forgotten, and how many each forgets at most: one
// commit of the event loop.
constexpr absl::Duration kForgetInterval = absl::Minutes(1);
constexpr size_t kMostForgotten = 100;

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(time));
}

absl::Status WorkerNotFound(const std::string& name) {
  return rpc::MakeError(absl::StatusCode::kNotFound, "WORKER_NOT_FOUND",
                        absl::StrCat("worker \"", name, "\" has not been heard of"),
                        {{"worker", name}});
}

}  // namespace

std::optional<search::DeviceChoice> LeaseManager::FindDevice(const v1::Job& job) {
  const fleet::WorkerDemand demand = fleet::DemandOf(job);
  if (unserved_.contains(WorkQueue::KeyOf(demand))) return std::nullopt;
  // Few, and looked up without a text: there may be thousands of workers, and of jobs.
  std::vector<DeviceBalance::Class> classes;
  for (const auto& [name, state] : workers_) {
    if (!state.CanServe(demand)) continue;
    const v1::DeviceFacts& device = state.worker.device();
    auto found = std::find_if(classes.begin(), classes.end(), [&](const auto& known) {
      return fleet::IsSameClass(known.device, device);
    });
    if (found == classes.end()) {
      v1::Dialect dialect = demand.dialect;
      if (dialect == v1::DIALECT_UNSPECIFIED) {
        const bool has_cuda = fleet::HasDialect(device, v1::DIALECT_CUDA);
        dialect = has_cuda ? v1::DIALECT_CUDA : v1::DIALECT_OPENCL;
      }
      found = classes.insert(classes.end(), {.device = device, .dialect = dialect});
    }
    ++found->num_workers;
    if (state.lease.empty()) ++found->num_idle;
  }
  const DeviceBalance::Class* chosen = balance_.Choose(classes);
  if (chosen == nullptr) {
    unserved_[WorkQueue::KeyOf(demand)];
    return std::nullopt;
  }
  return search::DeviceChoice{.device = chosen->device, .dialect = chosen->dialect};
}

std::string LeaseManager::WhyNoDevice(const v1::Job& job) {
  const fleet::WorkerDemand demand = fleet::DemandOf(job);
  const auto known = unserved_.find(WorkQueue::KeyOf(demand));
  if (known != unserved_.end() && !known->second.empty()) return known->second;
  std::string why = fleet::WhyNoneServes(demand, ListWorkers());
  if (known != unserved_.end()) known->second = why;
  return why;
}

void LeaseManager::AwaitFleetChange(std::function<void()> changed) {
  fleet_watchers_.push_back(std::move(changed));
}

// A worker is there, or gone, or another than before.
void LeaseManager::NoteFleetChange() {
  unserved_.clear();
  balance_.Forget();
  has_fleet_changed_ = true;
  // Reasons may be others now.
  stuck_time_ = absl::InfinitePast();
}

// Not at each change: those who wait may be many, and so may be the workers that come.
void LeaseManager::TellFleetChange() {
  if (!has_fleet_changed_ || clock_.Now() - fleet_time_ < kFleetInterval) return;
  has_fleet_changed_ = false;
  fleet_time_ = clock_.Now();
  for (const auto& changed : std::exchange(fleet_watchers_, {})) changed();
}

bool LeaseManager::HasWorker(const Shelf& shelf) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const auto& entry) { return entry.second.CanServe(shelf); });
}

void LeaseManager::TellStuck() {
  const absl::Time now = clock_.Now();
  if (now - stuck_time_ < kStuckInterval) return;
  stuck_time_ = now;
  std::vector<v1::Worker> workers;
  // Reasons are texts about every worker: made once for what is demanded, and only where
  // nobody will do.
  std::map<std::string, std::string> reasons;
  const auto why = [&](const fleet::WorkerDemand& demand) {
    const auto [reason, is_new] = reasons.try_emplace(WorkQueue::KeyOf(demand));
    if (!is_new) return reason->second;
    if (workers.empty()) workers = ListWorkers();
    return reason->second = fleet::WhyNoneServes(demand, workers);
  };
  for (Shelf* shelf : queue_.Stocked()) {
    const bool is_served = HasWorker(*shelf);
    if (is_served) shelf->served_time = now;
    if (is_served ? !shelf->has_told : now - shelf->served_time < options_.patience) continue;
    shelf->has_told = !is_served;
    for (Task* task : WorkQueue::TasksOf(*shelf)) {
      if (is_served) {
        task->ForgetTold();
      } else if (now - task->served_time >= options_.patience) {
        task->TellStuck(why);
      }
    }
  }
}

v1::Worker LeaseManager::Describe(const FleetMember& state) const {
  const store::LeaseRecord* lease = leases_.Find(state.lease);
  if (lease == nullptr) return state.Describe("");
  return state.Describe(lease->candidate.empty() ? lease->job : lease->candidate);
}

std::vector<v1::Worker> LeaseManager::ListWorkers() const {
  std::vector<v1::Worker> workers;
  for (const auto& [name, state] : workers_) {
    if (!IsForgotten(state)) workers.push_back(Describe(state));
  }
  return workers;
}

// What was drained stays drained, however long its host is away.
void LeaseManager::ForgetWorkers() {
  const absl::Time now = clock_.Now();
  if (now - forget_time_ < kForgetInterval) return;
  forget_time_ = now;
  std::vector<std::string> forgotten;
  for (const auto& [name, state] : workers_) {
    const bool is_used = state.is_live || !state.is_idle() || state.held || state.is_draining;
    if (!is_used && IsForgotten(state)) forgotten.push_back(name);
    if (forgotten.size() == kMostForgotten) break;
  }
  if (forgotten.empty() || !Commit({.forgotten_workers = forgotten}, nullptr).ok()) return;
  for (const std::string& name : forgotten) workers_.erase(name);
}

bool LeaseManager::IsForgotten(const FleetMember& state) const {
  return clock_.Now() - FromProto(state.worker.synchronize_time()) > options_.memory;
}

absl::StatusOr<v1::Worker> LeaseManager::LookupWorker(const std::string& name) const {
  const auto found = workers_.find(name);
  if (found == workers_.end()) return WorkerNotFound(name);
  return Describe(found->second);
}

absl::StatusOr<v1::Worker> LeaseManager::SetDraining(const std::string& name, bool is_draining) {
  const auto found = workers_.find(name);
  if (found == workers_.end()) return WorkerNotFound(name);
  FleetMember& state = found->second;
  MTMC_RETURN_IF_ERROR(Commit({.workers = {{.worker = state.worker,
                                            .is_draining = is_draining,
                                            .identity = state.identity}}},
                              &state));
  state.is_draining = is_draining;
  NoteFleetChange();
  if (is_draining) TakeBackAhead(state);
  AnswerHeld(state);
  return Describe(state);
}

void LeaseManager::ShowMetrics() {
  // There may be thousands of each: words are made for what differs.
  std::map<std::pair<v1::Worker::State, std::string_view>, int> states;
  for (const auto& [name, state] : workers_) {
    if (IsForgotten(state)) continue;
    ++states[{state.StateWith(leases_.Contains(state.lease)), state.worker.device().product()}];
  }
  CoordinatorMetrics::Counts workers;
  for (const auto& [kind, count] : states) {
    const std::string word = base::EnumWord(v1::Worker::State_Name(kind.first), "STATE_");
    workers[{word, std::string(kind.second)}] = count;
  }
  metrics_.ShowWorkers(workers);
  std::map<std::pair<bool, std::string_view>, int> tasks;
  for (const auto& [key, task] : queue_.tasks()) {
    if (!task.lease.empty()) continue;
    const fleet::WorkerDemand& demand = task.work.demand;
    ++tasks[{task.work.lease.has_evaluation(),
             demand.device ? demand.device->product() : demand.selector.product()}];
  }
  // From the start, so that an empty queue is told from one that nobody sees.
  CoordinatorMetrics::Counts queue = {{{"evaluation", "any"}, 0}, {{"inspection", "any"}, 0}};
  for (const auto& [kind, count] : tasks) {
    const auto& [is_evaluation, product] = kind;
    queue[{is_evaluation ? "evaluation" : "inspection",
           product.empty() ? "any" : std::string(product)}] += count;
  }
  metrics_.ShowQueue(queue);
}

}  // namespace mtmc::coordinator
