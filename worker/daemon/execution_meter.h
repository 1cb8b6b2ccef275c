// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mtmc/pipe/v1/runner.pb.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// A runner whose executions are added up: the device time of a candidate's kernels,
// whatever they are executed for. Those under load are not timed, and are taken to last as
// long as the execution before them; of the passes for counters each as long as the
// profiled execution. Thread-compatible.
class ExecutionMeter final : public RunnerParty {
 public:
  // Borrows the runner.
  explicit ExecutionMeter(RunnerParty& runner) : runner_(runner) {}

  Reply<pipe::v1::RunnerResponse> Call(const pipe::v1::RunnerRequest& request,
                                       absl::Duration timeout) override {
    auto reply = runner_.Call(request, timeout);
    if (request.has_execute() && !request.execute().keep_only()) {
      if (!request.execute().under_load()) executed_seconds_ = reply.response.outputs().seconds();
      seconds_ += executed_seconds_;
    }
    seconds_ += reply.response.timed().executed_seconds();
    const v1::Profile& profile = reply.response.profile();
    for (const v1::KernelActivity& kernel : profile.kernels()) {
      seconds_ += kernel.seconds() * (1 + profile.passes());
    }
    return reply;
  }

  double seconds() const { return seconds_; }

 private:
  RunnerParty& runner_;
  double seconds_ = 0;
  // Of the last execution that was timed.
  double executed_seconds_ = 0;
};

}  // namespace mtmc::worker
