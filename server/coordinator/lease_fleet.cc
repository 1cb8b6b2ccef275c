// SPDX-License-Identifier: Apache-2.0
//
// The fleet as LeaseManager shows it: a device for a job, who waits and why, the
// workers by name.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/enum_word.h"
#include "common/base/status_macros.h"
#include "common/rpc/error.h"
#include "google/protobuf/util/time_util.h"
#include "server/coordinator/coordinator_metrics.h"
#include "server/coordinator/lease_manager.h"

namespace mtmc::coordinator {
namespace {

// How soon it is seen that nobody may do a task, long before its search hears of it.
constexpr absl::Duration kStuckInterval = absl::Seconds(1);

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
  std::optional<search::DeviceChoice> best;
  int best_rank = -1;
  for (const auto& [name, state] : workers_) {
    if (!state.CanServe(demand)) continue;
    v1::Dialect dialect = demand.dialect;
    if (dialect == v1::DIALECT_UNSPECIFIED) {
      const bool has_cuda = fleet::HasDialect(state.worker.device(), v1::DIALECT_CUDA);
      dialect = has_cuda ? v1::DIALECT_CUDA : v1::DIALECT_OPENCL;
    }
    const int rank = (dialect == v1::DIALECT_CUDA ? 2 : 0) + (state.lease.empty() ? 1 : 0);
    if (rank <= best_rank) continue;
    best_rank = rank;
    best = {.device = state.worker.device(), .dialect = dialect};
  }
  return best;
}

std::string LeaseManager::WhyNoDevice(const v1::Job& job) {
  return fleet::WhyNoneServes(fleet::DemandOf(job), ListWorkers());
}

void LeaseManager::TellStuck() {
  const absl::Time now = clock_.Now();
  std::vector<v1::Worker> workers;
  for (auto& [key, task] : queue_.tasks()) {
    if (!task.lease.empty() || now - task.served_time < kStuckInterval) continue;
    // Reasons are texts about every worker; nobody needs them where one will do.
    const bool is_served = std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
      return CanServe(entry.second, task);
    });
    if (is_served) {
      task.NoteServed(now);
      continue;
    }
    if (workers.empty()) workers = ListWorkers();
    task.TellStuck(workers, now, options_.patience);
  }
}

v1::Worker LeaseManager::Describe(const FleetMember& state) const {
  const auto lease = leases_.find(state.lease);
  if (lease == leases_.end()) return state.Describe("");
  const store::LeaseRecord& record = lease->second;
  return state.Describe(record.candidate.empty() ? record.job : record.candidate);
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
  FleetMember& state = found->second;
  MTMC_RETURN_IF_ERROR(Commit(
      {.workers = {
           {.worker = state.worker, .is_draining = is_draining, .identity = state.identity}}}));
  state.is_draining = is_draining;
  if (is_draining) TakeBackAhead(state);
  if (state.held) std::exchange(state.held, nullptr)(IdleResponse(state));
  return Describe(state);
}

void LeaseManager::ShowMetrics() {
  CoordinatorMetrics::Counts workers;
  for (const auto& [name, state] : workers_) {
    const std::string word =
        base::EnumWord(v1::Worker::State_Name(Describe(state).state()), "STATE_");
    ++workers[{word, state.worker.device().product()}];
  }
  metrics_.ShowWorkers(workers);
  // From the start, so that an empty queue is told from one that nobody sees.
  CoordinatorMetrics::Counts queue = {{{"evaluation", "any"}, 0}, {{"inspection", "any"}, 0}};
  for (const auto& [key, task] : queue_.tasks()) {
    if (!task.lease.empty()) continue;
    const std::string& product = task.work.demand.selector.product();
    ++queue[{task.work.lease.has_evaluation() ? "evaluation" : "inspection",
             product.empty() ? "any" : product}];
  }
  metrics_.ShowQueue(queue);
}

}  // namespace mtmc::coordinator
