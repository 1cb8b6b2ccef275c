// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mtmc/v1/evaluation.pb.h"

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
  // On the workloads that `get_inputs` draws unchanged; KernelBench has no others.
  bool kernelbench_allclose = true;
  // Workloads, dropped distributions and oracle; nothing about timing.
  v1::VerificationSummary checks;
};

// Of a candidate that did something wrong.
Verification Failed(v1::Failure failure);

// Keeps the classes that both hold, and the errors of the worse one.
void MergeInto(Verification& all, const Verification& one);

// The weaker of two oracles: `fp64`, `strict`, `equal` from strong to weak.
const std::string& WeakerOracle(const std::string& a, const std::string& b);

}  // namespace mtmc::worker
