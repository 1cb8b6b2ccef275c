// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/work_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace mtmc::coordinator {

void Task::TellGranted() const {
  for (const Waiter& waiter : waiters) {
    if (waiter.granted) waiter.granted();
  }
}

v1::LeaseResult GivenUp(const Task& task) {
  v1::LeaseResult result;
  const std::string message =
      absl::StrCat("worker lost ", task.losses, " times", task.last_failure.empty() ? "" : ": ",
                   task.last_failure);
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
  for (auto& [key, task] : tasks_) {
    if (!task.lease.empty() || !fits(task)) continue;
    if (best == nullptr || rank(task) < rank(*best)) best = &task;
  }
  return best;
}

}  // namespace mtmc::coordinator
