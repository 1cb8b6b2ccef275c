// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "common/base/clock.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/daemon/evaluation_context.h"
#include "worker/daemon/evaluation_run.h"

namespace mtmc::worker {

// Turns a leased piece of work into its result by driving the three children:
//
//   build -> verify -> tune -> measure -> profile      (one candidate)
//   load  -> time the baselines                        (one problem)
//
// A bad candidate is an Evaluation with a failure, a bad problem a
// problem_failure, and trouble of our own a worker_failure. Thread-compatible;
// blocks for as long as the work takes, each stage within its own deadline.
class Evaluator {
 public:
  using Parties = EvaluationContext::Parties;
  using Options = EvaluationContext::Options;
  using Fetch = EvaluationContext::Fetch;
  using Progress = EvaluationRun::Progress;

  // Borrows the parties and the clock, which must outlive it.
  Evaluator(Parties parties, Fetch fetch, base::Clock& clock, Options options);

  // Where the memory of the device runs out, and the candidate is not to blame, what the
  // children keep is given back and everything is tried once more. What fails on a full disk is
  // a worker_failure with reason DISK_FULL, whoever would be to blame otherwise.
  v1::LeaseResult Inspect(const v1::InspectionRequest& request, const Progress& progress);
  v1::LeaseResult Evaluate(const v1::EvaluationRequest& request, const Progress& progress);

  // Fetches what `request` names and builds its program with `builder`, whose
  // cache Evaluate's builder shares. May run beside the others.
  void Prepare(const v1::EvaluationRequest& request, BuilderParty& builder) const;

 private:
  v1::LeaseResult WithMemory(const std::function<v1::LeaseResult()>& work) const;
  v1::LeaseResult WithRoom(v1::LeaseResult result) const;

  CounterRule counter_rule_;
  ProcessOffsets offsets_;
  const EvaluationContext context_;
};

}  // namespace mtmc::worker
