// SPDX-License-Identifier: Apache-2.0
#include "policy/service/batcher.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace mtmc::policy {

Batcher::Batcher(ActionScorer& scorer, const Options& options)
    : scorer_(scorer), options_(options), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "mtmc-batcher");
}

Batcher::~Batcher() {
  {
    absl::MutexLock lock(&mutex_);
    is_ending_ = true;
  }
  thread_.join();
  std::deque<Waiting> rest;
  {
    absl::MutexLock lock(&mutex_);
    rest.swap(queue_);
  }
  for (Waiting& waiting : rest) {
    waiting.done(absl::UnavailableError("the policy service is shutting down"));
  }
}

absl::Status Batcher::Submit(ScoreRequest request, absl::Time deadline, Done done) {
  absl::MutexLock lock(&mutex_);
  if (is_ending_) return absl::UnavailableError("the policy service is shutting down");
  if (queue_.size() >= options_.max_queued) {
    return absl::ResourceExhaustedError(absl::StrCat(
        queue_.size(), " requests wait already, must be less than ", options_.max_queued));
  }
  queue_.push_back({std::move(request), absl::Now(), deadline, std::move(done)});
  return absl::OkStatus();
}

void Batcher::Run() {
  for (;;) {
    std::vector<Waiting> batch = TakeBatch();
    if (batch.empty()) return;
    Process(std::move(batch));
  }
}

std::vector<Batcher::Waiting> Batcher::TakeBatch() {
  absl::MutexLock lock(&mutex_);
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_ending_ || !queue_.empty();
  };
  mutex_.Await(absl::Condition(&has_work));
  if (is_ending_) return {};
  const auto is_full = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_ending_ || queue_.size() >= options_.max_batch;
  };
  mutex_.AwaitWithDeadline(absl::Condition(&is_full), queue_.front().arrival + options_.max_delay);
  if (is_ending_) return {};
  const size_t count = std::min(queue_.size(), options_.max_batch);
  std::vector<Waiting> batch;
  for (size_t i = 0; i < count; ++i) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

void Batcher::Process(std::vector<Waiting> batch) {
  const absl::Time now = absl::Now();
  const auto expired = std::stable_partition(
      batch.begin(), batch.end(), [&](const Waiting& waiting) { return waiting.deadline > now; });
  for (auto waiting = expired; waiting != batch.end(); ++waiting) {
    waiting->done(absl::DeadlineExceededError("the caller's deadline passed in the queue"));
  }
  batch.erase(expired, batch.end());
  if (batch.empty()) return;
  std::vector<ScoreRequest> requests;
  for (Waiting& waiting : batch) requests.push_back(std::move(waiting.request));
  std::vector<ActionScorer::Result> results = scorer_.Score(requests);
  for (size_t i = 0; i < batch.size(); ++i) batch[i].done(std::move(results[i]));
}

}  // namespace mtmc::policy
