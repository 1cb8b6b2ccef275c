// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/work_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fleet/device_class.h"

namespace mtmc::coordinator {

std::string WorkQueue::KeyOf(const fleet::WorkerDemand& demand) {
  return absl::StrCat(demand.selector.SerializeAsString(), "|", static_cast<int>(demand.dialect),
                      "|", static_cast<int>(demand.min_isolation), "|",
                      demand.device ? fleet::DeviceClass(*demand.device) : "any");
}

WorkQueue::Added WorkQueue::Add(search::Work work, Task::Waiter waiter, absl::Time now) {
  const auto [found, is_new] = tasks_.try_emplace(work.key);
  Task& task = found->second;
  const bool is_queued = is_new || !task.shelves.empty();
  Displace(task);
  task.waiters.push_back(std::move(waiter));
  if (is_new) {
    task.work = std::move(work);
    task.project = ProjectShares::ProjectOf(task.work.lease.job());
    task.order = next_order_++;
    task.submit_time = now;
    task.served_time = now;
  }
  if (is_queued) Place(task);
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

void WorkQueue::Erase(const std::string& key) {
  const auto found = tasks_.find(key);
  if (found == tasks_.end()) return;
  Displace(found->second);
  given_up_.erase(key);
  tasks_.erase(found);
}

void WorkQueue::RemoveWaiter(Task& task, const std::string& job) {
  const bool is_queued = !task.shelves.empty();
  Displace(task);
  std::erase_if(task.waiters, [&](const Task::Waiter& waiter) { return waiter.job == job; });
  if (is_queued) Place(task);
}

void WorkQueue::SetLease(Task& task, const std::string& lease) {
  Displace(task);
  task.lease = lease;
  task.ForgetTold();
}

void WorkQueue::Requeue(Task& task, const std::string& lost, absl::Time now) {
  if (task.lease != lost) return;
  task.lease.clear();
  task.served_time = now;
  if (!task.is_given_up) Place(task);
}

void WorkQueue::GiveUp(Task& task) {
  Displace(task);
  task.is_given_up = true;
  given_up_.insert(task.work.key);
}

Task* WorkQueue::Next(const MayServe& may_serve,
                      const std::function<bool(const Task&)>& fits) const {
  Task* best = nullptr;
  auto best_rank = std::make_tuple(absl::InfiniteDuration(), uint64_t{0}, uint64_t{0});
  for (const auto& [id, shelf] : stocked_) {
    if (!may_serve(*shelf)) continue;
    for (const auto& [project, places] : shelf->projects) {
      const absl::Duration clock = shares_.ClockOf(project);
      for (const auto& [served, order, task] : places) {
        const auto rank = std::make_tuple(clock, served, order);
        if (best != nullptr && rank >= best_rank) break;
        if (!fits(*task)) continue;
        best = task;
        best_rank = rank;
        break;
      }
    }
  }
  return best;
}

void WorkQueue::MarkServed(const std::string& job) {
  const uint64_t turn = next_order_++;
  served_[job] = turn;
  if (served_.size() > forget_served_above_) ForgetServed();
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  for (Task* task : found->second) {
    for (Shelf* shelf : task->shelves) {
      Shelf::Places& places = shelf->projects.at(task->project);
      places.erase({task->served, task->order, task});
      places.insert({turn, task->order, task});
    }
    task->served = turn;
  }
}

std::vector<std::string> WorkQueue::Hopeless() const {
  std::vector<std::string> keys;
  for (const std::string& key : given_up_) {
    if (tasks_.at(key).lease.empty()) keys.push_back(key);
  }
  return keys;
}

std::vector<Shelf*> WorkQueue::Stocked() const {
  std::vector<Shelf*> shelves;
  for (const auto& [id, shelf] : stocked_) shelves.push_back(shelf);
  return shelves;
}

std::vector<Task*> WorkQueue::TasksOf(const Shelf& shelf) {
  std::vector<Task*> tasks;
  for (const auto& [project, places] : shelf.projects) {
    for (const auto& [served, order, task] : places) tasks.push_back(task);
  }
  return tasks;
}

void WorkQueue::Place(Task& task) {
  if (task.waiters.empty()) return;
  const std::string& job = task.work.lease.job();
  task.served = ServedOf(job);
  for (const Task::Waiter& waiter : task.waiters) {
    Shelf& shelf = ShelfOf(waiter.demand);
    const bool is_there =
        std::find(task.shelves.begin(), task.shelves.end(), &shelf) != task.shelves.end();
    if (is_there) continue;
    task.shelves.push_back(&shelf);
    if (stocked_.emplace(shelf.id, &shelf).second) {
      shelf.served_time = std::max(shelf.served_time, task.served_time);
    }
    shelf.projects[task.project].insert({task.served, task.order, &task});
  }
  jobs_[job].insert(&task);
  if (++waiting_[task.project] == 1) shares_.NoteWaiting(task.project);
  newly_queued_.push_back(task.work.key);
}

void WorkQueue::Displace(Task& task) {
  if (task.shelves.empty()) return;
  for (Shelf* shelf : std::exchange(task.shelves, {})) {
    const auto places = shelf->projects.find(task.project);
    places->second.erase({task.served, task.order, &task});
    if (places->second.empty()) shelf->projects.erase(places);
    if (shelf->projects.empty()) stocked_.erase(shelf->id);
  }
  if (shelves_.size() > drop_shelves_above_) DropEmptyShelves();
  const auto job = jobs_.find(task.work.lease.job());
  job->second.erase(&task);
  if (job->second.empty()) jobs_.erase(job);
  const auto waiting = waiting_.find(task.project);
  if (--waiting->second == 0) waiting_.erase(waiting);
}

Shelf& WorkQueue::ShelfOf(const fleet::WorkerDemand& demand) {
  std::unique_ptr<Shelf>& shelf = shelves_[KeyOf(demand)];
  if (shelf == nullptr) {
    shelf = std::make_unique<Shelf>(Shelf{.id = next_shelf_++, .demand = demand});
  }
  return *shelf;
}

void WorkQueue::DropEmptyShelves() {
  std::erase_if(shelves_, [](const auto& entry) { return entry.second->projects.empty(); });
  drop_shelves_above_ = std::max<size_t>(1'000, 2 * shelves_.size());
}

uint64_t WorkQueue::ServedOf(const std::string& job) const {
  const auto found = served_.find(job);
  return found == served_.end() ? 0 : found->second;
}

// Jobs that were served longest ago have ended, or come first once they are back.
void WorkQueue::ForgetServed() {
  const uint64_t oldest = next_order_ - std::min<uint64_t>(next_order_, forget_served_above_ / 2);
  std::erase_if(served_, [&](const auto& entry) {
    return entry.second < oldest && !jobs_.contains(entry.first);
  });
  forget_served_above_ = std::max<size_t>(10'000, 2 * served_.size());
}

}  // namespace mtmc::coordinator
