// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mtmc::store {

// Writes the pages of a SQLite database's log back to its file on a thread of its own, so that
// whoever commits waits for a short rest alone:
//
//   pages of the log   0 .......................... tail .... newest
//   written back by    this thread, round by round  whoever commits
//
// Only a log that is written back to its newest page begins anew, and while commits go on a
// thread apart never comes so far. A round that readers hold up is followed by another once
// there is more.
//
// Thread-safe. A resource. What cannot be written back stays in the log, and is tried again with
// a later commit.
class SqliteCheckpointer {
 public:
  // In pages of the log.
  struct Options {
    // After so many they are written back: 128 MB, some tenths of a second to read at a start.
    // Most pages are changed anew by every commit, and go to the file once each time.
    int early_pages = 32'000;
    // A rest that whoever commits writes back: 4 MB, some milliseconds.
    int tail_pages = 1'000;
    // A log of 512 MB, which whoever commits writes back: the thread does not keep up.
    int most_pages = 128'000;
  };

  // `path` is that of the database.
  SqliteCheckpointer(std::string path, const Options& options);

  // Waits for the round that is under way.
  ~SqliteCheckpointer();

  SqliteCheckpointer(const SqliteCheckpointer&) = delete;
  SqliteCheckpointer& operator=(const SqliteCheckpointer&) = delete;

  // A commit has left `pages` in the log. True if the one who made it is to write back the rest
  // now. Never blocks for a disk.
  bool IsDue(int pages) ABSL_LOCKS_EXCLUDED(mu_);

  // Of the log, which has `pages`, so many are `written` back.
  void NoteWritten(int pages, int written) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const std::string path_;
  const Options options_;

  absl::Mutex mu_;
  // Of the log, as the last commit left it; how many are written back; and how many there were
  // when the last round began.
  int pages_ ABSL_GUARDED_BY(mu_) = 0;
  int written_ ABSL_GUARDED_BY(mu_) = 0;
  int tried_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  std::jthread thread_;
};

}  // namespace mtmc::store
