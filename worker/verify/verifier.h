// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mtmc/v1/evaluation.pb.h"
#include "worker/verify/party.h"

namespace mtmc::worker {

// What verification found.
struct Verification {
  v1::Evaluation::Verdict verdict = v1::Evaluation::VERDICT_UNSPECIFIED;
  // Absent when every workload is correct.
  std::optional<v1::Failure> failure;
  // Errors of the worst workload, one per output.
  std::vector<v1::OutputError> errors;
  // Precision classes that hold on every workload.
  std::vector<v1::Precision> satisfied;
  bool kernelbench_allclose = true;
};

// The reference process could not do its part; says nothing about the candidate.
struct ReferenceTrouble {
  std::string reason;
  std::string message;
};

// Compares the program that the runner has loaded with the fp64 run of the
// reference, on the public workload and on hidden ones: fresh inputs at fresh
// addresses, outputs and scratch poisoned with another byte each time. The
// expected outputs stay in the reference process; the runner never sees them.
//
//   runner.Load(program)  ->  Verifier(runner, reference).Verify({...})
//
// Leaves both sides on the public workload (number 0), executed once, so that
// timing can follow. Thread-compatible. Blocks up to `timeout`.
class Verifier {
 public:
  struct Options {
    // Workloads besides the public one.
    int hidden_seeds = 2;
    // For all workloads together.
    absl::Duration timeout = absl::Seconds(60);
  };

  // Borrows both, which must outlive it.
  Verifier(RunnerParty& runner, ReferenceParty& reference);

  // All workloads, hidden ones first.
  Verification Verify(const Options& options);

  // One workload: prepares inputs, executes once, compares.
  Verification VerifyWorkload(int workload, absl::Duration timeout);

  // Executes on the inputs prepared last and compares, without drawing new ones: for the
  // variants of a sweep.
  Verification VerifyAgain(absl::Duration timeout);

  // Compares what the last execution, timed or not, left in the outputs.
  Verification Recheck(absl::Duration timeout);

  // Set when the last call could not be answered by the reference process.
  const std::optional<ReferenceTrouble>& trouble() const { return trouble_; }

 private:
  Verification Execute(absl::Duration timeout);
  Verification Compare(const v1::RunnerResponse& outputs, absl::Duration timeout);

  RunnerParty& runner_;
  ReferenceParty& reference_;
  // Inputs of the workload prepared last, as they are sent to the runner.
  std::unique_ptr<v1::RunnerRequest> execute_;
  int workload_ = 0;
  // Alternates, so that a value left from an earlier run is not taken for a result.
  int poison_ = 0;
  std::optional<ReferenceTrouble> trouble_;
};

// The failure that a runner's reply stands for; absent when it answered and the
// candidate did nothing wrong. `stage` is where the caller is.
std::optional<v1::Failure> FailureOf(const Reply<v1::RunnerResponse>& reply, v1::Stage stage);

}  // namespace mtmc::worker
