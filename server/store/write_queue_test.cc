// SPDX-License-Identifier: Apache-2.0
#include "server/store/write_queue.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/testing/status_matchers.h"
#include "server/store/test_records.h"

namespace mtmc::store {
namespace {

using testing::IsOk;
using testing::StatusIs;

// A disk that writes when it is let, and can be full.
class Disk {
 public:
  WriteQueue::Apply apply() {
    return [this](const std::deque<Write>& writes) { return Take(writes); };
  }

  void Hold() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    is_held_ = true;
  }

  void Release() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    is_held_ = false;
  }

  void SetFull(bool is_full) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    is_full_ = is_full;
  }

  // Texts of the events that were written.
  std::vector<std::string> written() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return written_;
  }

  int transactions() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return transactions_;
  }

 private:
  absl::Status Take(const std::deque<Write>& writes) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const auto is_free = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !is_held_; };
    mu_.Await(absl::Condition(&is_free));
    if (is_full_) return absl::ResourceExhaustedError("full");
    ++transactions_;
    for (const Write& write : writes) written_.push_back(write.events.front().notice());
    return absl::OkStatus();
  }

  mutable absl::Mutex mu_;
  bool is_held_ ABSL_GUARDED_BY(mu_) = false;
  bool is_full_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::string> written_ ABSL_GUARDED_BY(mu_);
  int transactions_ ABSL_GUARDED_BY(mu_) = 0;
};

Write Note(const std::string& text, const std::string& job = kJob) {
  return {.job_name = job, .events = {Notice(text)}};
}

}  // namespace

TEST_CASE("Writes that come while the disk is busy share the next transaction", "[store]") {
  Disk disk;
  WriteQueue queue(disk.apply());
  disk.Hold();
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) {
    texts.push_back(std::to_string(i));
    REQUIRE_THAT(queue.Add(Note(texts.back())), IsOk());
  }
  CHECK(queue.newest() == 100);
  disk.Release();
  REQUIRE_THAT(queue.SettleAll(), IsOk());
  CHECK(disk.written() == texts);
  CHECK(disk.transactions() <= 2);
}

TEST_CASE("What waits for a write does not wait for a later one", "[store]") {
  Disk disk;
  WriteQueue queue(disk.apply());
  REQUIRE_THAT(queue.Add(Note("a")), IsOk());
  REQUIRE_THAT(queue.SettleAll(), IsOk());
  disk.Hold();
  REQUIRE_THAT(queue.Add(Note("b")), IsOk());
  bool has_run = false;
  queue.After(1, [&has_run] { has_run = true; });
  CHECK(has_run);
  absl::Notification is_written;
  queue.After(2, [&is_written] { is_written.Notify(); });
  CHECK_FALSE(is_written.HasBeenNotified());
  disk.Release();
  is_written.WaitForNotification();
  CHECK(disk.written() == std::vector<std::string>{"a", "b"});
}

TEST_CASE("A reader waits for what it reads and for nothing else", "[store]") {
  Disk disk;
  WriteQueue queue(disk.apply());
  disk.Hold();
  REQUIRE_THAT(queue.Add(Note("a", "projects/p/jobs/a")), IsOk());
  CHECK_THAT(queue.Settle(JobSubject("projects/p/jobs/b")), IsOk());
  CHECK_THAT(queue.Settle(EvaluationSubject("f")), IsOk());
  CHECK(disk.written().empty());
  disk.Release();
  CHECK_THAT(queue.Settle(JobSubject("projects/p/jobs/a")), IsOk());
  CHECK(disk.written() == std::vector<std::string>{"a"});
}

TEST_CASE("While the disk is full nothing is added, and what was is not forgotten", "[store]") {
  Disk disk;
  WriteQueue queue(disk.apply());
  disk.SetFull(true);
  REQUIRE_THAT(queue.Add(Note("a")), IsOk());
  std::atomic<bool> has_run = false;
  queue.After(1, [&has_run] { has_run = true; });
  CHECK_THAT(queue.SettleAll(), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK_THAT(queue.Add(Note("b")), StatusIs(absl::StatusCode::kResourceExhausted));
  CHECK_FALSE(has_run);
  disk.SetFull(false);
  absl::Notification is_written;
  queue.After(1, [&is_written] { is_written.Notify(); });
  is_written.WaitForNotification();
  CHECK(has_run);
  CHECK(disk.written() == std::vector<std::string>{"a"});
  REQUIRE_THAT(queue.SettleAll(), IsOk());
  REQUIRE_THAT(queue.Add(Note("c")), IsOk());
  REQUIRE_THAT(queue.SettleAll(), IsOk());
  CHECK(disk.written() == std::vector<std::string>{"a", "c"});
}

TEST_CASE("The end of a queue writes what is left, or drops what waits for it", "[store]") {
  Disk disk;
  auto queue = std::make_unique<WriteQueue>(disk.apply());
  disk.Hold();
  REQUIRE_THAT(queue->Add(Note("a")), IsOk());
  REQUIRE_THAT(queue->Add(Note("b")), IsOk());
  disk.Release();
  queue = nullptr;
  CHECK(disk.written() == std::vector<std::string>{"a", "b"});

  disk.SetFull(true);
  queue = std::make_unique<WriteQueue>(disk.apply());
  REQUIRE_THAT(queue->Add(Note("c")), IsOk());
  bool has_run = false;
  queue->After(1, [&has_run] { has_run = true; });
  queue = nullptr;
  CHECK_FALSE(has_run);
  CHECK(disk.written().size() == 2);
}

}  // namespace mtmc::store
