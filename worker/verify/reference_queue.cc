// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/reference_queue.h"

#include <utility>

#include "absl/time/clock.h"

namespace mtmc::worker {

ReferenceQueue::ReferenceQueue(ReferenceParty& reference)
    : reference_(reference), thread_([this] { Run(); }) {}

ReferenceQueue::~ReferenceQueue() {
  {
    absl::MutexLock lock(&mu_);
    is_closed_ = true;
  }
  thread_.join();
}

ReferenceQueue::Answer ReferenceQueue::Call(v1::ReferenceRequest request, absl::Time deadline) {
  Task task([this, request = std::move(request), deadline] {
    return reference_.Call(request, deadline - absl::Now());
  });
  Answer answer = task.get_future();
  absl::MutexLock lock(&mu_);
  tasks_.push_back(std::move(task));
  return answer;
}

void ReferenceQueue::Run() {
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mu_);
      auto has_work = [this] {
        mu_.AssertReaderHeld();
        return is_closed_ || !tasks_.empty();
      };
      mu_.Await(absl::Condition(&has_work));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace mtmc::worker
