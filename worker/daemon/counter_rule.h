// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mtmc::worker {

// Which candidates are worth the passes of the hardware counters: the fastest of
// its problem that this worker has measured so far, the first included. A search
// asks for counters of the programs that it goes on from, which are these; of n
// candidates in random order about ln(n) are. Thread-safe.
class CounterRule {
 public:
  // `problem` is a digest. Remembers `seconds` if it is the least.
  bool Wants(const std::string& problem, double seconds);

 private:
  absl::Mutex mu_;
  // Least time of each problem.
  std::map<std::string, double> best_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mtmc::worker
