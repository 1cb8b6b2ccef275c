// SPDX-License-Identifier: Apache-2.0
#include "server/store/write_queue.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace mtmc::store {
namespace {

// Some seconds of a coordinator under load, while a disk stutters.
constexpr size_t kMaxWaiting = 20'000;

// A transaction of more would let the first of them wait for long.
constexpr size_t kMaxBatch = 500;

}  // namespace

std::string JobSubject(const std::string& job) { return absl::StrCat("job ", job); }

std::string EvaluationSubject(const std::string& fingerprint) {
  return absl::StrCat("evaluation ", fingerprint);
}

std::string InspectionSubject(const std::string& key) { return absl::StrCat("inspection ", key); }

std::string RequestSubject(const std::string& request_id) {
  return absl::StrCat("request ", request_id);
}

std::string RecordsSubject() { return "records"; }

std::vector<std::string> SubjectsOf(const Write& write) {
  std::vector<std::string> subjects;
  if (!write.job_name.empty()) subjects.push_back(JobSubject(write.job_name));
  if (!write.request_id.empty()) subjects.push_back(RequestSubject(write.request_id));
  if (write.evaluation) subjects.push_back(EvaluationSubject(write.evaluation->fingerprint));
  if (write.inspection) subjects.push_back(InspectionSubject(write.inspection->key));
  if (!write.learned.empty() || !write.refuted.empty()) subjects.push_back(RecordsSubject());
  return subjects;
}

WriteQueue::WriteQueue(Apply apply) : apply_(std::move(apply)), thread_([this] { Run(); }) {}

WriteQueue::~WriteQueue() {
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
  }
  thread_.join();
}

absl::Status WriteQueue::Add(Write& write) {
  const std::vector<std::string> subjects = SubjectsOf(write);
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &WriteQueue::HasSpace));
  if (!status_.ok()) return status_;
  waiting_.push_back(std::move(write));
  ++newest_;
  for (const std::string& subject : subjects) subjects_[subject] = newest_;
  return absl::OkStatus();
}

int64_t WriteQueue::newest() const {
  absl::MutexLock lock(&mu_);
  return newest_;
}

void WriteQueue::After(int64_t number, std::function<void()> task) {
  {
    absl::MutexLock lock(&mu_);
    if (number > written_) {
      tasks_.emplace(number, std::move(task));
      return;
    }
  }
  task();
}

absl::Status WriteQueue::Settle(const std::string& subject) {
  absl::MutexLock lock(&mu_);
  const auto found = subjects_.find(subject);
  return found == subjects_.end() ? absl::OkStatus() : Await(found->second);
}

absl::Status WriteQueue::SettleAll() {
  absl::MutexLock lock(&mu_);
  return Await(newest_);
}

absl::Status WriteQueue::Await(int64_t number) {
  const auto is_over = [this, number]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return written_ >= number || !status_.ok();
  };
  mu_.Await(absl::Condition(&is_over));
  return written_ >= number ? absl::OkStatus() : status_;
}

bool WriteQueue::HasSpace() const { return waiting_.size() < kMaxWaiting || !status_.ok(); }

bool WriteQueue::HasWork() const { return !waiting_.empty() || is_ending_; }

void WriteQueue::Run() {
  pthread_setname_np(pthread_self(), "mtmc-disk");
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      // After a failure the batch is still there, and the same is tried again.
      if (batch_.empty()) mu_.Await(absl::Condition(this, &WriteQueue::HasWork));
      if (batch_.empty() && waiting_.empty()) return;
      const bool is_new = batch_.empty();
      while (is_new && !waiting_.empty() && batch_.size() < kMaxBatch) {
        batch_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
    }
    WriteBatch();
    absl::MutexLock lock(&mu_);
    if (status_.ok()) continue;
    // What could not be written is lost as by a crash: nobody has heard of it.
    if (is_ending_) return;
    mu_.AwaitWithTimeout(absl::Condition(&is_ending_), kRetry);
  }
}

void WriteQueue::WriteBatch() {
  const absl::Status status = apply_(batch_);
  std::vector<std::function<void()>> due;
  {
    absl::MutexLock lock(&mu_);
    if (!status.ok() && status_.ok()) {
      base::Log(base::LogLevel::kWarning, "commits wait for the disk",
                {{"commits", batch_.size()}, {"error", status}});
    }
    status_ = status;
    if (!status.ok()) return;
    written_ += static_cast<int64_t>(batch_.size());
    const auto end = tasks_.upper_bound(written_);
    for (auto task = tasks_.begin(); task != end; ++task) due.push_back(std::move(task->second));
    tasks_.erase(tasks_.begin(), end);
    std::erase_if(subjects_,
                  [written = written_](const auto& entry) { return entry.second <= written; });
  }
  batch_.clear();
  for (const std::function<void()>& task : due) task();
}

}  // namespace mtmc::store
