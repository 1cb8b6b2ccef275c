// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mtmc/v1/job.pb.h"
#include "mtmc/v1/worker.pb.h"

namespace mtmc::load {

// Percentiles of a set of durations, in milliseconds; 0 of none.
struct Spread {
  int64_t count = 0;
  double p50_ms = 0;
  double p99_ms = 0;
};

Spread SpreadOf(std::vector<absl::Duration> durations);

// What a load has seen. Rates and durations count from Begin(); what must never happen
// counts from the start.
struct Totals {
  // Since Begin().
  absl::Duration time;
  int64_t evaluations = 0;
  int64_t inspections = 0;
  int64_t events = 0;
  int64_t jobs_ended = 0;
  // From the coordinator's time stamp on the record of a program until its lease is with
  // a worker: commit, queue, grant, and the way. Includes the wait for a free worker.
  Spread ready_to_lease;
  // From sending a result until the next lease is there, of workers that got one.
  Spread result_to_lease;
  // From the start. The first three are faults of the coordinator.
  int64_t disordered_events = 0;
  int64_t twice_finished = 0;
  // Work that was granted under a second lease although no worker lost the first.
  int64_t repeated_leases = 0;
  // Calls and streams that found no coordinator and were made again.
  int64_t breaks = 0;
  // Calls that failed otherwise, and the first of them.
  int64_t errors = 0;
  std::string first_error;

  bool is_correct() const {
    return disordered_events == 0 && twice_finished == 0 && repeated_leases == 0 && errors == 0;
  }
};

// Counts what simulated workers and clients see. Thread-safe.
class Tally {
 public:
  // From here on rates and durations are counted.
  void Begin(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);

  Totals Read(absl::Time now) const ABSL_LOCKS_EXCLUDED(mu_);

  // A lease reached a worker for the first time.
  void NoteLease(const v1::Lease& lease, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteNextLease(absl::Duration since_result) ABSL_LOCKS_EXCLUDED(mu_);
  // A result was acknowledged.
  void NoteResult(bool is_evaluation) ABSL_LOCKS_EXCLUDED(mu_);

  // `is_first_watch`: of several watches of a job one tells what became of candidates.
  void NoteEvent(const v1::JobEvent& event, bool is_in_order, bool is_first_watch)
      ABSL_LOCKS_EXCLUDED(mu_);
  void NoteFinishedTwice() ABSL_LOCKS_EXCLUDED(mu_);
  void NoteJobEnd() ABSL_LOCKS_EXCLUDED(mu_);

  void NoteBreak() ABSL_LOCKS_EXCLUDED(mu_);
  void NoteError(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A candidate between its program and its evaluation.
  struct Open {
    absl::Time ready = absl::InfinitePast();
    absl::Time leased = absl::InfinitePast();
  };

  void Settle(const std::string& candidate) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  absl::Time begin_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  Totals totals_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::Duration> ready_to_lease_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::Duration> result_to_lease_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, Open> open_ ABSL_GUARDED_BY(mu_);
  // Hashes of the lease under which each piece of work came first, by that of its name.
  std::unordered_map<size_t, size_t> leases_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::load
