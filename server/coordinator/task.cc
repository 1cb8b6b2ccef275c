// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mtmc::coordinator {

void Task::TellGranted() const {
  for (const Waiter& waiter : waiters) {
    if (waiter.granted) waiter.granted();
  }
}

bool Task::IsResting(absl::Time now) const {
  return failures > 0 && now >= last_failure_time && now < last_failure_time + rest;
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

void Task::TellFailing() const {
  const std::string why = absl::StrCat("workers could not do it, ", failures,
                                       " times, and are asked again: ", last_failure);
  for (const Waiter& waiter : waiters) {
    if (waiter.stuck) waiter.stuck(why);
  }
}

void Task::ForgetTold() {
  for (Waiter& waiter : waiters) waiter.told.clear();
}

void Task::TellStuck(const std::function<std::string(const fleet::WorkerDemand&)>& why) {
  std::vector<std::string> reasons;
  for (const Waiter& waiter : waiters) {
    reasons.push_back(why(waiter.demand));
    if (reasons.back().empty()) return ForgetTold();
  }
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

}  // namespace mtmc::coordinator
