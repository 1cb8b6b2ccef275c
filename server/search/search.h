// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/v1/action.pb.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::base {
class Clock;
class Executor;
}  // namespace mtmc::base

namespace mtmc::store {
class ArtifactStore;
class BlobQueue;
class JobStore;
}  // namespace mtmc::store

namespace mtmc::search {

class EventLoop;
class Evaluator;
class MacroPolicy;
class MicroCoder;

// Whether the job is in a state that it never leaves.
bool HasEnded(v1::Job::State state);

inline bool HasEnded(const v1::Job& job) { return HasEnded(job.state()); }

// Whether the peer that said this is down or full, and may be well in a moment.
bool IsPassing(const absl::Status& status);

// Hears what happens in searches; on the event loop.
class SearchObserver {
 public:
  virtual ~SearchObserver() = default;

  // New events of the job are in the store.
  virtual void OnEvents(const std::string& job) = 0;
  // A decision of `policy` was recorded.
  virtual void OnDecision(const std::string& policy, v1::Action::Type type) = 0;
  // The policy service did not decide; `cause` is a short word for a label.
  virtual void OnFallback(const std::string& cause) = 0;
  // An evaluation was looked for in the store.
  virtual void OnCacheLookup(bool is_hit) = 0;
  // A trial of `job` is over: evaluated, or given up by its coder. Recorded just now.
  virtual void OnCandidate(const v1::Job& job, const v1::Candidate& candidate) = 0;
  // The job has ended; `best` is its best candidate, null if it has none.
  virtual void OnEnd(const v1::Job& job, const v1::Candidate* best) = 0;
};

// What a search works with. All outlive it.
struct SearchTools {
  EventLoop& loop;
  store::JobStore& store;
  store::ArtifactStore& artifacts;
  // Where artifacts are read, which waits for a disk or the network.
  base::Executor& readers;
  // Where artifacts are written, which waits for the same.
  store::BlobQueue& blobs;
  MicroCoder& coder;
  MacroPolicy& policy;
  Evaluator& evaluator;
  const base::Clock& clock;
  SearchObserver& observer;
};

// The search of one job, as one coroutine:
//
//   device -> inspection -> start candidate -> { select, choose, apply,
//   evaluate, record } -> end
//
// A paused search waits between two steps, and then reads from its first line as after
// a restart.
//
// Every step first looks in the store for what is already decided or done and
// goes on from there, and records what it decided before it acts on it. A
// search can therefore be dropped at any moment; a new one for the same job
// ends with the same result.
//
// Invariants:
//  1. A trial is counted in the same transaction that records its decision. A known
//     step (known_step.h) is none.
//  2. Trials are begun one after another; at most the newest is unfinished.
//  3. `best_candidate` changes in the transaction that records the evaluation.
//  4. Nothing of a job changes after its end.
//  5. Device time and tokens are counted in the transaction that records what they were
//     used for; a job that rests or has ended has nothing reserved.
//
// Every call is made on the event loop. A resource; drop it only when it has
// ended or the loop has stopped.
class Search {
 public:
  struct Options {
    // First wait before a service that is down is asked again, and the longest.
    absl::Duration min_backoff = absl::Milliseconds(200);
    absl::Duration max_backoff = absl::Seconds(5);
    // Calls of one request that the gateway may let end by their deadline (clients.h), which is
    // far above what any takes: an answer may be lost once, and a request that hangs the
    // gateway must not hold its job for ever.
    int max_late_calls = 3;
    // Between two looks for a worker that matches, of the first ones.
    absl::Duration device_poll = absl::Milliseconds(100);
    // How much device time of a project with a quota an evaluation reserves at once: above
    // most evaluations, and little of any quota.
    absl::Duration quota_slice = absl::Seconds(60);
    // Evaluations, inspections and records of other projects are used as well.
    bool shares_across_projects = false;
  };

  Search(std::string job, const Options& options, const SearchTools& tools);
  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // As recorded last; PENDING before Start has read it.
  v1::Job::State state() const;

  // Starts or resumes. `on_end` is called when the job has ended (OK), or with
  // the error of a store that cannot go on; another search may then resume the job.
  void Start(std::function<void(absl::Status)> on_end);

  // Asks for the end. Returns the job, CANCELLING unless it has ended already.
  absl::StatusOr<v1::Job> Cancel();

  // Lets the job rest: what a worker or the coder does at this moment is finished and
  // recorded, nothing else is begun, and the wall time stands still. Returns the job,
  // PAUSED unless it has ended already. FAILED_PRECONDITION with reason JOB_CANCELLING
  // when it is ending.
  absl::StatusOr<v1::Job> Pause();

  // Goes on from what is recorded. Returns the job, unchanged unless it was PAUSED.
  absl::StatusOr<v1::Job> Resume();

 private:
  class Impl;

  const std::unique_ptr<Impl> impl_;
};

}  // namespace mtmc::search
