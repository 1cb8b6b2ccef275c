// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/unique_fd.h"

namespace mtmc::worker {

// Watches one child process from a thread of its own: reads what it prints, so
// that text neither blocks the child nor fills a disk, and ends it when it takes
// more memory than it may.
//
// Thread-compatible: Stop() and what follows it are called by one thread.
class ChildWatch {
 public:
  struct Options {
    pid_t process = 0;
    // Largest resident set of the process and its descendants together; 0 is no
    // limit. Looked at every 100 ms.
    int64_t max_resident_bytes = 0;
    // Kills them. Called on the watch's thread, at most once.
    std::function<void()> kill;
  };

  // `streams` are the read ends of pipes that the child prints into.
  ChildWatch(std::vector<base::UniqueFd> streams, Options options);
  ~ChildWatch();

  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;

  // Takes what the pipes still hold, then lets go of the process.
  void Stop();

  // The last lines of each stream, one after the other. REQUIRES: Stop().
  std::string Text() const;

  // What the process held when it was killed for it; 0 if it was not.
  int64_t exceeded_bytes() const { return exceeded_bytes_.load(); }

 private:
  struct Stream {
    base::UniqueFd fd;
    // The end of what was read.
    std::string tail;
  };

  void Run();
  bool Drain(Stream& stream);
  void CheckMemory();

  const Options options_;
  std::vector<Stream> streams_;
  base::UniqueFd stop_event_;
  std::atomic<int64_t> exceeded_bytes_ = 0;
  std::thread thread_;
};

}  // namespace mtmc::worker
