// SPDX-License-Identifier: Apache-2.0
#include "server/search/known_step.h"

namespace mtmc::search {

bool IsJudgement(const v1::Evaluation& evaluation) {
  switch (evaluation.failure().kind()) {
    case v1::Failure::KIND_CRASH:
    case v1::Failure::KIND_TIMEOUT:
    case v1::Failure::KIND_OUT_OF_MEMORY:
    case v1::Failure::KIND_REFERENCE:
      return false;
    default:
      return true;
  }
}

std::optional<int> FindJudged(const Lineage& lineage, const std::string& program) {
  for (const v1::Candidate& candidate : lineage.candidates) {
    if (candidate.state() == v1::Candidate::STATE_EVALUATED &&
        candidate.program().sha256() == program && IsJudgement(candidate.evaluation())) {
      return candidate.trial();
    }
  }
  return std::nullopt;
}

bool IsKnownStep(const Lineage& lineage, int trial) {
  const v1::Candidate& candidate = lineage.candidates[static_cast<size_t>(trial)];
  // Another job may have judged the program, too; that one was a trial of this job.
  if (candidate.coder() != kBuiltinCoder || !candidate.evaluation().is_cached()) return false;
  return FindJudged(lineage, candidate.program().sha256()).value_or(trial) < trial;
}

int TrialsAfter(const Lineage& lineage, int trial) {
  int count = 0;
  for (int later = trial + 1; later <= lineage.trials(); ++later) {
    if (!IsKnownStep(lineage, later)) ++count;
  }
  return count;
}

int OriginalOf(const Lineage& lineage, int trial) {
  if (!IsKnownStep(lineage, trial)) return trial;
  const v1::Candidate& candidate = lineage.candidates[static_cast<size_t>(trial)];
  for (const v1::Candidate& older : lineage.candidates) {
    if (older.program().sha256() == candidate.program().sha256() &&
        older.schedule() == candidate.schedule()) {
      return older.trial();
    }
  }
  return trial;
}

}  // namespace mtmc::search
