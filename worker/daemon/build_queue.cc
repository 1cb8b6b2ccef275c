// SPDX-License-Identifier: Apache-2.0
#include "worker/daemon/build_queue.h"

#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/base/trace_context.h"

namespace mtmc::worker {

BuildQueue::BuildQueue(BuilderParty& builder)
    : builder_(builder), executor_({.name = "builds", .num_threads = 1}) {}

BuildQueue::Answer BuildQueue::Build(pipe::v1::BuilderRequest request, absl::Duration timeout) {
  std::packaged_task<BuiltVariants()> task(
      [this, request = std::move(request), timeout, trace = base::CurrentTrace()] {
        const base::TraceScope scope(trace);
        return BuildVariants(builder_, request, timeout);
      });
  Answer answer = task.get_future();
  // An evaluation has two.
  MTMC_CHECK(executor_.Submit(std::move(task)).ok());
  return answer;
}

bool BuildQueue::IsReady(const Answer& answer) {
  return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace mtmc::worker
