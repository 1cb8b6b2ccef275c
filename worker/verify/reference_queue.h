// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>

#include "absl/time/time.h"
#include "common/base/executor.h"
#include "mtmc/pipe/v1/reference.pb.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// Calls of the reference process that their caller does not wait for at once: one after
// the other, in their order, on a thread of their own. Thread-compatible.
class ReferenceQueue {
 public:
  using Answer = std::future<Reply<pipe::v1::ReferenceResponse>>;

  // Borrows `reference`, which is called from another thread while calls are under way.
  // The destructor waits for all calls.
  explicit ReferenceQueue(ReferenceParty& reference);

  Answer Call(pipe::v1::ReferenceRequest request, absl::Time deadline);

 private:
  ReferenceParty& reference_;
  base::Executor executor_;
};

}  // namespace mtmc::worker
