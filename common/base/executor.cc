// SPDX-License-Identifier: Apache-2.0
#include "common/base/executor.h"

#include <pthread.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace mtmc::base {

Executor::Executor(Options options) : options_(std::move(options)) {
  MTMC_CHECK(options_.num_threads > 0);
  threads_.reserve(static_cast<std::size_t>(options_.num_threads));
  for (int i = 0; i < options_.num_threads; ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

Executor::~Executor() {
  Drain();
  // Joined here, while the members that the threads use still live.
  threads_.clear();
}

absl::Status Executor::Submit(Task task) {
  absl::MutexLock lock(&mu_);
  if (is_draining_) {
    return absl::UnavailableError(absl::StrCat(options_.name, " is shutting down"));
  }
  if (queue_.size() >= options_.max_queued) {
    return absl::ResourceExhaustedError(
        absl::StrCat(options_.name, " has ", queue_.size(), " queued tasks, its limit"));
  }
  queue_.push_back(std::move(task));
  return absl::OkStatus();
}

bool Executor::Drain(absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  is_draining_ = true;
  const auto is_idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return queue_.empty() && num_running_ == 0;
  };
  return mu_.AwaitWithDeadline(absl::Condition(&is_idle), deadline);
}

void Executor::Work() {
  // Linux limits thread names to 15 characters and refuses longer ones.
  ::pthread_setname_np(::pthread_self(), options_.name.substr(0, 15).c_str());
  const auto has_news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !queue_.empty() || is_draining_;
  };
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_news));
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
      ++num_running_;
    }
    task();
    // What the task owns dies before the pool counts as idle.
    task = nullptr;
    absl::MutexLock lock(&mu_);
    --num_running_;
  }
}

}  // namespace mtmc::base
