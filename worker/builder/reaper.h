// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/subprocess.h"
#include "common/base/unique_fd.h"

namespace mtmc::worker {

// Waits for killed processes in the background. Most are gone at once, but the
// end of a process that has a device's context takes as long as its driver
// likes, and one that hangs inside the driver never ends; neither must hold the
// next candidate. Thread-safe.
class Reaper {
 public:
  // The one of this process; never destroyed.
  static Reaper& Default();

  // Kills the process and takes it over. `name` is for the log.
  void Take(base::Subprocess process, std::string name);

  // Whether all processes are gone by `deadline`. Blocks.
  bool AwaitAll(absl::Time deadline);

  // Processes that were killed more than 10 s ago and are not gone.
  int num_stuck() const;

 private:
  struct Dying {
    base::Subprocess process;
    std::string name;
    absl::Time killed;
    bool is_reported = false;
  };

  Reaper();

  void Run();
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::UniqueFd wake_event_;
  mutable absl::Mutex mu_;
  std::vector<Dying> dying_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::worker
