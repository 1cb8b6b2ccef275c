// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "mtmc/v1/device.pb.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/verify/party.h"

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
  struct Parties {
    BuilderParty& builder;
    RunnerParty& runner;
    ReferenceParty& reference;
  };

  struct Options {
    // As the runner reported it.
    v1::DeviceFacts device;
    // Index of the device among those of its backend.
    int device_index = 0;
    // Resource name of this worker and of its present session.
    std::string worker;
    std::string session;
    // Names of the isolation mechanisms in force.
    std::vector<std::string> isolation;
    // PyTorch's name of the device: `cpu` or `cuda:0`.
    std::string torch_device = "cpu";
  };

  // Called at the start of every stage.
  using Progress = std::function<void(v1::Stage)>;

  // Local path of a blob, fetched if it is not there yet.
  using Fetch = std::function<absl::StatusOr<std::string>(const v1::Digest&)>;

  // Borrows the parties and the clock, which must outlive it.
  Evaluator(Parties parties, Fetch fetch, base::Clock& clock, Options options);

  v1::LeaseResult Inspect(const v1::InspectionRequest& request, const Progress& progress);
  v1::LeaseResult Evaluate(const v1::EvaluationRequest& request, const Progress& progress);

 private:
  class Run;

  v1::LeaseResult InspectOnce(const v1::InspectionRequest& request, const Progress& progress);

  const Parties parties_;
  const Fetch fetch_;
  base::Clock& clock_;
  const Options options_;
};

}  // namespace mtmc::worker
