// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "mtmc/v1/job.pb.h"

namespace mtmc::base {
class Executor;
}

namespace mtmc::store {
class JobStore;
}

namespace mtmc::coordinator {

// Who watches which job. The store's event log is the source: a watcher reads from its
// cursor on, and Notify only says that there may be more, so that nothing is missed or
// sent twice whatever the timing. An event that Tell brings is sent without being read
// if it is the one after the cursor. Thread-safe.
class JobFeed {
 public:
  // Where events go. Called by one thread at a time, and may block for a while.
  struct Sink {
    // An error ends the watch.
    std::function<absl::Status(v1::JobEvent)> write;
    // Called once at most: OK when the job has ended, else why the watch ends.
    std::function<void(const absl::Status&)> close;
  };

  // Reads run on `executor`, with one task at most for each watcher. Both outlive the feed.
  JobFeed(store::JobStore& store, base::Executor& executor);

  // Sends the events of `job` after `cursor` and then each new one. Ends after
  // the event with which the job ended; OUT_OF_RANGE with reason CURSOR_EXPIRED where the log
  // has no event `cursor`: it was compacted, or the store came back from a backup.
  void Watch(const std::string& job, int64_t cursor, Sink sink);

  // New events of `job` are in the store: these, with their sequences, or others if there are
  // none. Never blocks.
  void Tell(const std::string& job, std::vector<v1::JobEvent> events);

  // The same of events that have to be read.
  void Notify(const std::string& job);

  // New events of any job may be.
  void NotifyAll();

  // Ends every watch with UNAVAILABLE: the client resumes elsewhere or later.
  void Close();

 private:
  struct Watcher;

  std::vector<std::shared_ptr<Watcher>> WatchersOf(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);
  void Schedule(const std::shared_ptr<Watcher>& watcher, std::vector<v1::JobEvent> events);
  void Pump(const std::shared_ptr<Watcher>& watcher);
  absl::Status SendTold(Watcher& watcher, std::vector<v1::JobEvent> events);
  absl::Status CheckCursor(Watcher& watcher);
  absl::Status SendNew(Watcher& watcher);
  static absl::Status Send(Watcher& watcher, v1::JobEvent event);
  void End(const std::shared_ptr<Watcher>& watcher, const absl::Status& status);

  store::JobStore& store_;
  base::Executor& executor_;

  absl::Mutex mu_;
  std::multimap<std::string, std::shared_ptr<Watcher>> watchers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::coordinator
