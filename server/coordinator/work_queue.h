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
#include "server/search/backends.h"

namespace mtmc::coordinator {

// Work that is not finished, and who waits for it.
struct Task {
  struct Waiter {
    std::string job;
    std::function<void()> granted;
    search::Done<v1::LeaseResult> done;
  };

  search::Work work;
  std::vector<Waiter> waiters;
  // Id of the one lease that is not lost; empty while it is queued.
  std::string lease;
  int losses = 0;
  int crashes = 0;
  std::string last_failure;
  // Workers that said they cannot; asked again only if there is no other.
  std::set<std::string> failed_on;
  uint64_t order = 0;
  absl::Time submit_time;
  bool was_granted = false;

  // Tells who waits that a worker has begun.
  void TellGranted() const;
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

  const std::map<std::string, Task>& tasks() const { return tasks_; }

 private:
  std::map<std::string, Task> tasks_;
  // When each job was last served, as a count of grants.
  std::map<std::string, uint64_t> served_;
  uint64_t next_order_ = 1;
};

}  // namespace mtmc::coordinator
