// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/reference_queue.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/trace_context.h"

namespace mtmc::worker {

ReferenceQueue::ReferenceQueue(ReferenceParty& reference)
    : reference_(reference), executor_({.name = "reference", .num_threads = 1}) {}

ReferenceQueue::Answer ReferenceQueue::Call(pipe::v1::ReferenceRequest request,
                                            absl::Time deadline) {
  std::packaged_task<Reply<pipe::v1::ReferenceResponse>()> task(
      [this, request = std::move(request), deadline, trace = base::CurrentTrace()] {
        const base::TraceScope scope(trace);
        return reference_.Call(request, deadline - absl::Now());
      });
  Answer answer = task.get_future();
  // A verification has some twenty calls, far fewer than may wait.
  MTMC_CHECK(executor_.Submit(std::move(task)).ok());
  return answer;
}

}  // namespace mtmc::worker
