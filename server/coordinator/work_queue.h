// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/coordinator/project_shares.h"
#include "server/coordinator/task.h"

namespace mtmc::coordinator {

// Queued work that demands the same of its worker.
struct Shelf {
  // Of no other shelf, ever.
  uint64_t id = 0;
  fleet::WorkerDemand demand;
  // When there last was a worker for it, or nothing on it.
  absl::Time served_time;
  // Some of it has been told that there is none.
  bool has_told = false;

  // By project; first comes the job that was served least recently, and of its work the
  // oldest.
  using Places = std::set<std::tuple<uint64_t, uint64_t, Task*>>;
  std::map<std::string, Places> projects;
};

// Unfinished work by key, and whose turn it is. What is queued, which is neither granted
// nor given up, lies on a shelf for each demand that those who wait for it have, so that
// a worker looks at shelves and not at work. Thread-compatible; a Task stays where it is
// until it is erased.
class WorkQueue {
 public:
  using MayServe = std::function<bool(const Shelf&)>;

  // The task of `work`, made if it is new.
  struct Added {
    Task& task;
    bool is_new = false;
  };

  Added Add(search::Work work, Task::Waiter waiter, absl::Time now);

  // Null when there is none.
  Task* Find(const std::string& key);
  const Task* Find(const std::string& key) const;

  void Erase(const std::string& key);

  // `job` does not wait for it any more.
  void RemoveWaiter(Task& task, const std::string& job);

  // From now on, or again, `lease` is its one lease that is not lost.
  void SetLease(Task& task, const std::string& lease);

  // Puts it back into the queue if `lost` is its lease.
  void Requeue(Task& task, const std::string& lost, absl::Time now);

  // No worker is given it any more; Hopeless() names it while it has no lease.
  void GiveUp(Task& task);

  // Among queued tasks of shelves that `may_serve` and that `fits`: of the project that
  // has had the least device time, the oldest of the job that was served least recently.
  // Null when there is none.
  Task* Next(const MayServe& may_serve, const std::function<bool(const Task&)>& fits) const;

  // A task of `job` was granted.
  void MarkServed(const std::string& job);

  // Keys of what was queued since the last call.
  std::vector<std::string> TakeNewlyQueued() { return std::exchange(newly_queued_, {}); }

  // Keys of what is given up and has no lease.
  std::vector<std::string> Hopeless() const;

  bool HasQueued() const { return !stocked_.empty(); }

  // Those that something lies on.
  std::vector<Shelf*> Stocked() const;

  // Equal for demands that the same workers meet.
  static std::string KeyOf(const fleet::WorkerDemand& demand);

  // All tasks of a shelf, in no order.
  static std::vector<Task*> TasksOf(const Shelf& shelf);

  ProjectShares& shares() { return shares_; }

  const std::map<std::string, Task>& tasks() const { return tasks_; }

 private:
  void Place(Task& task);
  void Displace(Task& task);
  Shelf& ShelfOf(const fleet::WorkerDemand& demand);
  uint64_t ServedOf(const std::string& job) const;
  void ForgetServed();
  void DropEmptyShelves();

  std::map<std::string, Task> tasks_;
  // By KeyOf. Empty ones are kept: the same is demanded again, and workers remember
  // which shelves they serve.
  std::map<std::string, std::unique_ptr<Shelf>> shelves_;
  // By id.
  std::map<uint64_t, Shelf*> stocked_;
  // Queued tasks by job.
  std::unordered_map<std::string, std::set<Task*>> jobs_;
  // How many queued tasks each project has.
  std::unordered_map<std::string, int> waiting_;
  // When each job was last served, as a count of grants.
  std::unordered_map<std::string, uint64_t> served_;
  ProjectShares shares_;
  std::vector<std::string> newly_queued_;
  std::set<std::string> given_up_;
  uint64_t next_order_ = 1;
  uint64_t next_shelf_ = 1;
  size_t forget_served_above_ = 10'000;
  size_t drop_shelves_above_ = 1'000;
};

}  // namespace mtmc::coordinator
