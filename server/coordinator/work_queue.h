// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mtmc/v1/worker.pb.h"
#include "server/coordinator/loss_odds.h"
#include "server/search/backends.h"

namespace mtmc::coordinator {

// Work that is not finished, and who waits for it.
struct Task {
  struct Waiter {
    std::string job;
    // Jobs that wait for the same may demand different workers.
    fleet::WorkerDemand demand;
    std::function<void()> granted;
    std::function<void(const std::string& why)> stuck;
    search::Done<v1::LeaseResult> done;
    // What `stuck` was told last.
    std::string told;
  };

  // As the first who waits submitted it.
  search::Work work;
  std::vector<Waiter> waiters;
  // Id of the one lease that is not lost; empty while it is queued.
  std::string lease;
  // Grants that were lost or handed back, for whatever reason.
  int losses = 0;
  int crashes = 0;
  // Losses that may be its doing: of workers that ran it and nothing else.
  std::vector<RunLoss> run_losses;
  // One of the workers that was lost had it, perhaps beside other work. From then on
  // it runs alone, so that the next loss says something.
  bool is_suspect = false;
  // Workers are not given it any more.
  bool is_given_up = false;
  // Workers that said they cannot, and why the last one said so.
  int failures = 0;
  std::string last_failure;
  // Workers that could not or were lost with it; asked again only if there is no other.
  std::set<std::string> failed_on;
  uint64_t order = 0;
  absl::Time submit_time;
  // When a worker last had it or might have taken it.
  absl::Time served_time;
  bool was_granted = false;

  // What a worker is given: the work, with the least isolation that is enough for
  // one of those who wait.
  v1::Lease MakeLease() const;

  // Puts it back into the queue if `lost` is its lease.
  void Requeue(const std::string& lost, absl::Time now);

  // Tells who waits that a worker has begun.
  void TellGranted() const;

  // A worker might take it for one of those who wait.
  void NoteServed(absl::Time now);

  // Tells who waits why none of `workers` takes it, once that is so for `patience`.
  // Nobody is told while one takes it for any of them, and nobody the same twice in a
  // row.
  void TellStuck(const std::vector<v1::Worker>& workers, absl::Time now, absl::Duration patience);
};

// The result of a task that nobody could do.
v1::LeaseResult GivenUp(const Task& task);

// Unfinished work by key, and whose turn it is. Thread-compatible; a Task stays
// where it is until it is erased.
class WorkQueue {
 public:
  // The task of `work`, made if it is new.
  struct Added {
    Task& task;
    bool is_new = false;
  };

  Added Add(search::Work work, Task::Waiter waiter, absl::Time now);

  // Null when there is none.
  Task* Find(const std::string& key);
  const Task* Find(const std::string& key) const;

  void Erase(const std::string& key) { tasks_.erase(key); }

  // Among queued tasks that `fits`, of the job served least recently the oldest;
  // null when there is none.
  Task* Next(const std::function<bool(const Task&)>& fits);

  // A task of `job` was granted.
  void MarkServed(const std::string& job) { served_[job] = next_order_++; }

  std::map<std::string, Task>& tasks() { return tasks_; }

  const std::map<std::string, Task>& tasks() const { return tasks_; }

 private:
  std::map<std::string, Task> tasks_;
  // When each job was last served, as a count of grants.
  std::map<std::string, uint64_t> served_;
  uint64_t next_order_ = 1;
};

}  // namespace mtmc::coordinator
