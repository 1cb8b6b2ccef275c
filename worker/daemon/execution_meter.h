// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mtmc/v1/runner.pb.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// A runner whose executions are added up: device time that is spent on a
// candidate apart from timing it. Thread-compatible.
class ExecutionMeter final : public RunnerParty {
 public:
  // Borrows the runner.
  explicit ExecutionMeter(RunnerParty& runner) : runner_(runner) {}

  Reply<v1::RunnerResponse> Call(const v1::RunnerRequest& request,
                                 absl::Duration timeout) override {
    auto reply = runner_.Call(request, timeout);
    if (request.has_execute()) seconds_ += reply.response.outputs().seconds();
    return reply;
  }

  double seconds() const { return seconds_; }

 private:
  RunnerParty& runner_;
  double seconds_ = 0;
};

}  // namespace mtmc::worker
