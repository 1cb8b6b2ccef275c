// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mtmc/pipe/v1/runner.pb.h"
#include "mtmc/v1/evaluation.pb.h"
#include "worker/measure/series.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// One block of executions in the runner, with what was looked at.
struct CheckedBlock {
  SampleBlock samples;
  std::vector<pipe::v1::RunnerResponse::CheckedExecution> checked;
  double max_unseen_seconds = 0;
};

// Takes samples of the program that a runner has loaded and executed.
// Thread-compatible.
class RunnerSampler {
 public:
  struct Options {
    bool is_cold = true;
    // Share of the executions whose outputs' digest is asked for.
    double checked_ratio = 0;
    absl::Time deadline = absl::InfiniteFuture();
  };

  // Borrows the runner, which must outlive it.
  RunnerSampler(RunnerParty& runner, Options options) : runner_(runner), options_(options) {}

  // Samples on kept inputs in an unforeseeable order. ABORTED when the candidate failed:
  // failure() then says how.
  absl::StatusOr<CheckedBlock> Take(const BlockRequest& block,
                                    const std::vector<int64_t>& kept = {});

  // What the candidate did wrong in the last Take; KIND_UNSPECIFIED when the process
  // was lost by nobody's fault.
  const std::optional<v1::Failure>& failure() const { return failure_; }

  // Timed executions so far, warm-ups not counted.
  int num_timed() const { return num_timed_; }

 private:
  RunnerParty& runner_;
  const Options options_;
  std::optional<v1::Failure> failure_;
  int num_timed_ = 0;
};

}  // namespace mtmc::worker
