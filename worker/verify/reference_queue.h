// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <future>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mtmc/v1/reference.pb.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// Calls of the reference process that their caller does not wait for at once: one after
// the other, in their order, on a thread of their own. Thread-compatible.
class ReferenceQueue {
 public:
  using Answer = std::future<Reply<v1::ReferenceResponse>>;

  // Borrows `reference`, which is called from another thread while calls are under way.
  explicit ReferenceQueue(ReferenceParty& reference);

  // Waits for all calls.
  ~ReferenceQueue();

  ReferenceQueue(const ReferenceQueue&) = delete;
  ReferenceQueue& operator=(const ReferenceQueue&) = delete;

  Answer Call(v1::ReferenceRequest request, absl::Time deadline);

 private:
  using Task = std::packaged_task<Reply<v1::ReferenceResponse>()>;

  void Run();

  ReferenceParty& reference_;
  absl::Mutex mu_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace mtmc::worker
