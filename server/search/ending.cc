// SPDX-License-Identifier: Apache-2.0
#include "server/search/ending.h"

#include <utility>

#include "common/rpc/error.h"

namespace mtmc::search {

Ending FailedBecause(const std::string& reason, const std::string& message) {
  Ending ending{.reason = v1::Job::END_REASON_FAILED, .failure = v1::JobFailure()};
  ending.failure->set_reason(reason);
  ending.failure->set_message(message);
  return ending;
}

Ending FailedBecause(const absl::Status& status, const std::string& otherwise) {
  const std::string reason = rpc::ErrorReason(status);
  return FailedBecause(reason.empty() ? otherwise : reason, std::string(status.message()));
}

bool IsForGood(const absl::Status& status) {
  const std::string reason = rpc::ErrorReason(status);
  return reason == "CODER_REFUSED" || reason == "CODER_NOT_FOUND" || reason == "MODEL_NOT_SET" ||
         reason == "REPLAY_MISSING";
}

void SetBest(const v1::Candidate* candidate, v1::Job& job) {
  job.clear_best_candidate();
  job.clear_best_speedup();
  if (!candidate) return;
  job.set_best_candidate(candidate->name());
  if (const auto speedup = Speedup(*candidate)) job.set_best_speedup(*speedup);
}

void Conclude(Ending ending, const Lineage& lineage, v1::Job& job) {
  const std::optional<int> best = lineage.BestConfirmed();
  SetBest(best ? &lineage.candidates[static_cast<size_t>(*best)] : nullptr, job);
  const bool is_cancelled = ending.reason == v1::Job::END_REASON_CANCELLED;
  // A start program that nobody could work on is not what was asked for.
  const bool has_winner =
      !job.best_candidate().empty() &&
      !(ending.failure && job.best_candidate() == lineage.candidates.front().name());
  if (!has_winner && ending.reason == v1::Job::END_REASON_QUOTA && !ending.failure) {
    ending.failure = FailedBecause("QUOTA_EXCEEDED",
                                   "the project's quota was used up before a candidate was "
                                   "verified; an administrator can raise it with 'mtmc quota set'")
                         .failure;
  }
  if (!has_winner && !is_cancelled && !ending.failure) {
    ending.failure = FailedBecause("NO_CORRECT_CANDIDATE",
                                   "no candidate was verified within the budget; look at the "
                                   "failures of its candidates, or raise the budget")
                         .failure;
  }
  if (ending.failure) *job.mutable_failure() = *std::move(ending.failure);
  job.set_state(is_cancelled ? v1::Job::STATE_CANCELLED
                : has_winner ? v1::Job::STATE_SUCCEEDED
                             : v1::Job::STATE_FAILED);
  job.set_end_reason(ending.reason);
}

}  // namespace mtmc::search
