// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mtmc/v1/candidate.pb.h"

namespace mtmc::search {

// For tests: a correct candidate of a schedule, made from `parent` (none for the
// start), with the kernels of its profile in plan order.
inline v1::Candidate TimedCandidate(int trial, const std::string& schedule,
                                    const std::vector<std::pair<std::string, double>>& kernels,
                                    int parent = 0) {
  v1::Candidate candidate;
  candidate.set_name(absl::StrCat("jobs/j/candidates/c", trial));
  candidate.set_trial(trial);
  if (trial > 0) candidate.add_parents(absl::StrCat("jobs/j/candidates/c", parent));
  candidate.set_state(v1::Candidate::STATE_EVALUATED);
  candidate.set_schedule(schedule);
  candidate.mutable_program()->set_sha256(schedule);
  v1::Evaluation& evaluation = *candidate.mutable_evaluation();
  evaluation.set_verdict(v1::Evaluation::VERDICT_CORRECT);
  double total = 0;
  for (const auto& [name, seconds] : kernels) {
    v1::KernelActivity& kernel = *evaluation.mutable_profile()->add_kernels();
    kernel.set_kernel(name);
    kernel.set_seconds(seconds);
    total += seconds;
  }
  evaluation.mutable_measurement()->set_median_seconds(total);
  evaluation.add_comparisons()->set_speedup(1 / total);
  return candidate;
}

}  // namespace mtmc::search
