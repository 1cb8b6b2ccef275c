// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/store/job_store.h"

namespace mtmc::store {

// Writes that were committed and do not survive a crash yet, and the thread that writes
// them: as many in one transaction as there are when the disk is free, so that all of them
// wait for it once and whoever commits never does.
//
// Writes are numbered 1, 2, 3, ... and written in this order. Those that could not be
// written are tried again until they are; meanwhile nothing is added.
//
// Thread-safe. A resource.
class WriteQueue {
 public:
  // Writes all of them in one transaction, or nothing. Called on the queue's thread, with
  // the same again after an error, which is what Add() returns until one has succeeded. Of
  // what was written it may take what it wants.
  using Apply = std::function<absl::Status(std::deque<Write>&)>;

  // Between two attempts.
  static constexpr absl::Duration kRetry = absl::Milliseconds(200);

  explicit WriteQueue(Apply apply);

  // Tries to write what is left, once, and runs what waited for it. Nobody may wait in
  // Settle().
  ~WriteQueue();

  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;

  // Takes `write` unless it returns the error with which the last attempt to write
  // failed. Waits only while very much is not written.
  absl::Status Add(Write& write) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status Add(Write&& write) { return Add(write); }

  // Number of the newest write.
  int64_t newest() const ABSL_LOCKS_EXCLUDED(mu_);

  // Runs `task` once the write `number` and all before it survive: at once, or on the
  // queue's thread.
  void After(int64_t number, std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until every write that has to do with `subject` survives (SubjectsOf); the error
  // of the attempt if that fails.
  absl::Status Settle(const std::string& subject) ABSL_LOCKS_EXCLUDED(mu_);

  // The same for every write so far.
  absl::Status SettleAll() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void WriteBatch() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Await(int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasSpace() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const Apply apply_;

  mutable absl::Mutex mu_;
  // Not given to Apply() yet.
  std::deque<Write> waiting_ ABSL_GUARDED_BY(mu_);
  int64_t newest_ ABSL_GUARDED_BY(mu_) = 0;
  // All up to this one survive.
  int64_t written_ ABSL_GUARDED_BY(mu_) = 0;
  // Of the last attempt.
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  // By number of the write that each waits for.
  std::multimap<int64_t, std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  // Newest write that has to do with each subject, of those that are not written.
  std::unordered_map<std::string, int64_t> subjects_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;

  // The thread's own: what it writes at present.
  std::deque<Write> batch_;

  std::jthread thread_;
};

// What a write has to do with, so that a reader knows whether to wait for it.
std::vector<std::string> SubjectsOf(const Write& write);
// With its candidates and events.
std::string JobSubject(const std::string& job);
std::string EvaluationSubject(const std::string& fingerprint);
std::string InspectionSubject(const std::string& key);
std::string RequestSubject(const std::string& request_id);
// All records that searches learned.
std::string RecordsSubject();

}  // namespace mtmc::store
