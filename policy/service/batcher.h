// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "policy/model/action_scorer.h"

namespace mtmc::policy {

// Collects score requests of several callers into one call of a scorer.
//
//   callers --Submit--> queue --(up to max_batch, or max_delay)--> Score --> done
//
// A batch starts when it is full or when its oldest request has waited for
// `max_delay`; while a batch runs, the next one collects, so under load the
// delay costs nothing. A service; thread-safe; owns one thread, on which the
// scorer runs and `done` is called.
class Batcher {
 public:
  struct Options {
    // Requests of one forward pass. Eight prompts of 4,000 tokens fill two CPU
    // cores or a GPU; more only adds waiting.
    size_t max_batch = 8;
    // How long the first request waits for others: below what a small model
    // takes for one pass, so that a lone caller hardly notices.
    absl::Duration max_delay = absl::Milliseconds(5);
    // Beyond this many waiting requests a caller is refused: four batches, or
    // what a caller with a deadline of some seconds would not see the end of.
    size_t max_queued = 32;
  };

  using Done = std::function<void(ActionScorer::Result)>;

  // Borrows the scorer, which outlives it. REQUIRES: max_batch, max_queued > 0.
  Batcher(ActionScorer& scorer, const Options& options);

  // Answers what still waits with UNAVAILABLE; blocks for the running batch.
  ~Batcher();

  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Calls `done` exactly once on the batcher's thread if it returns OK, never
  // otherwise. RESOURCE_EXHAUSTED when the queue is full. A request whose
  // deadline passes while it waits is answered DEADLINE_EXCEEDED and not scored.
  absl::Status Submit(ScoreRequest request, absl::Time deadline, Done done);

 private:
  struct Waiting {
    ScoreRequest request;
    absl::Time arrival;
    absl::Time deadline;
    Done done;
  };

  void Run();
  // Blocks until a batch is due; empty when the batcher ends.
  std::vector<Waiting> TakeBatch();
  void Process(std::vector<Waiting> batch);

  // Constant after construction.
  ActionScorer& scorer_;
  const Options options_;

  absl::Mutex mutex_;
  std::deque<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;

  // Last, so that it starts when everything else is there.
  std::thread thread_;
};

}  // namespace mtmc::policy
