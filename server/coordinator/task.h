// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mtmc/v1/worker.pb.h"
#include "server/coordinator/loss_odds.h"
#include "server/search/backends.h"

namespace mtmc::coordinator {

struct Shelf;

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
  // Id of the one lease that is not lost; empty while it is queued. WorkQueue sets it.
  std::string lease;
  // Grants that were lost or handed back, for whatever reason.
  int losses = 0;
  int crashes = 0;
  // Losses that may be its doing: of workers that ran it and nothing else.
  std::vector<RunLoss> run_losses;
  // One of the workers that was lost had it, perhaps beside other work. From then on
  // it runs alone, so that the next loss says something.
  bool is_suspect = false;
  // Workers are not given it any more. WorkQueue sets it.
  bool is_given_up = false;
  // Workers that said they cannot, when the first and the last one did, and why the last.
  int failures = 0;
  absl::Time first_failure_time;
  absl::Time last_failure_time;
  std::string last_failure;
  // How long it rests after that one.
  absl::Duration rest;
  // Workers that could not or were lost with it; asked again only if there is no other.
  std::set<std::string> failed_on;
  uint64_t order = 0;
  absl::Time submit_time;
  // When it was submitted, or a worker last had it.
  absl::Time served_time;
  bool was_granted = false;
  // What its project was charged for the present lease (ProjectShares).
  absl::Duration charged;

  // Where it lies while it is queued; WorkQueue's own.
  std::vector<Shelf*> shelves;
  std::string project;
  uint64_t served = 0;

  // What a worker is given: the work, with the least isolation that is enough for
  // one of those who wait.
  v1::Lease MakeLease() const;

  // Whether a worker that could not do it is not asked again yet, for what kept it from the work
  // may pass. A clock that was set back does not make it longer.
  bool IsResting(absl::Time now) const;

  // Tells who waits that a worker has begun.
  void TellGranted() const;

  // Tells who waits that workers could not do it, and what the last one said.
  void TellFailing() const;

  // A worker might take it for one of those who wait.
  void ForgetTold();

  // Tells who waits why no worker takes it, as `why` says it for a demand; it is empty
  // where one does. Nobody is told while one takes it for any of them, and nobody the
  // same twice in a row.
  void TellStuck(const std::function<std::string(const fleet::WorkerDemand&)>& why);
};

// The result of a task that nobody could do.
v1::LeaseResult GivenUp(const Task& task);

}  // namespace mtmc::coordinator
