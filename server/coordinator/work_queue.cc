// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/work_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mtmc::coordinator {

void Task::Requeue(const std::string& lost, absl::Time now) {
  if (lease != lost) return;
  lease.clear();
  served_time = now;
}

void Task::TellGranted() const {
  for (const Waiter& waiter : waiters) {
    if (waiter.granted) waiter.granted();
  }
}

v1::Lease Task::MakeLease() const {
  v1::Isolation least = v1::ISOLATION_CONFINED;
  for (const Waiter& waiter : waiters) least = std::min(least, waiter.demand.min_isolation);
  v1::Lease made = work.lease;
  if (made.has_evaluation()) {
    made.mutable_evaluation()->mutable_options()->set_min_isolation(least);
  } else {
    made.mutable_inspection()->set_min_isolation(least);
  }
  return made;
}

void Task::NoteServed(absl::Time now) {
  served_time = now;
  for (Waiter& waiter : waiters) waiter.told.clear();
}

void Task::TellStuck(const std::vector<v1::Worker>& workers, absl::Time now,
                     absl::Duration patience) {
  std::vector<std::string> reasons;
  for (const Waiter& waiter : waiters) {
    reasons.push_back(fleet::WhyNoneServes(waiter.demand, workers));
  }
  const bool is_stuck =
      std::none_of(reasons.begin(), reasons.end(), [](const auto& why) { return why.empty(); });
  if (!is_stuck) return NoteServed(now);
  if (now - served_time < patience) return;
  for (size_t i = 0; i < waiters.size(); ++i) {
    const std::string before = std::exchange(waiters[i].told, reasons[i]);
    if (before != reasons[i] && waiters[i].stuck) waiters[i].stuck(reasons[i]);
  }
}

v1::LeaseResult GivenUp(const Task& task) {
  v1::LeaseResult result;
  const int lost = task.losses - task.failures;
  std::vector<std::string> causes;
  if (lost > 0) causes.push_back(absl::StrCat("worker lost ", lost, " times"));
  if (task.failures > 0) {
    causes.push_back(
        absl::StrCat("workers could not do it, ", task.failures, " times: ", task.last_failure));
  }
  const std::string message = absl::StrJoin(causes, "; ");
  if (task.work.lease.has_evaluation()) {
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

WorkQueue::Added WorkQueue::Add(search::Work work, Task::Waiter waiter, absl::Time now) {
  const auto [found, is_new] = tasks_.try_emplace(work.key);
  Task& task = found->second;
  task.waiters.push_back(std::move(waiter));
  if (is_new) {
    task.work = std::move(work);
    task.order = next_order_++;
    task.submit_time = now;
    task.served_time = now;
  }
  return {.task = task, .is_new = is_new};
}

Task* WorkQueue::Find(const std::string& key) {
  const auto found = tasks_.find(key);
  return found == tasks_.end() ? nullptr : &found->second;
}

const Task* WorkQueue::Find(const std::string& key) const {
  const auto found = tasks_.find(key);
  return found == tasks_.end() ? nullptr : &found->second;
}

Task* WorkQueue::Next(const std::function<bool(const Task&)>& fits) {
  auto rank = [this](const Task& task) {
    const auto served = served_.find(task.work.lease.job());
    return std::make_pair(served == served_.end() ? 0 : served->second, task.order);
  };
  Task* best = nullptr;
  std::pair<uint64_t, uint64_t> best_rank;
  for (auto& [key, task] : tasks_) {
    if (!task.lease.empty()) continue;
    // Whose turn it is costs less to see than whether it fits.
    const std::pair<uint64_t, uint64_t> task_rank = rank(task);
    if ((best != nullptr && task_rank >= best_rank) || !fits(task)) continue;
    best = &task;
    best_rank = task_rank;
  }
  return best;
}

}  // namespace mtmc::coordinator
