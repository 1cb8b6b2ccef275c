// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/storm.h"

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mtmc::fault {
namespace {

constexpr int kMaxAttempts = 3;

constexpr absl::Duration kInterval = absl::Seconds(2);

// In place of those that nobody met.
void Plan(const std::string& folder, const std::string& lines) {
  std::ofstream(folder + "/faults") << lines;
}

}  // namespace

std::string Outcome(const v1::LeaseResult& result) {
  if (result.has_worker_failure()) return "lost";
  if (!result.has_evaluation()) return "nothing";
  const v1::Evaluation& evaluation = result.evaluation();
  if (evaluation.has_failure()) return v1::Failure::Kind_Name(evaluation.failure().kind());
  return evaluation.has_measurement() ? "measured" : "nothing";
}

StormCoordinator::StormCoordinator(Options options, base::Clock& clock)
    : options_(std::move(options)), clock_(clock), random_(options_.seed) {}

bool StormCoordinator::Chance(double probability) {
  return std::bernoulli_distribution(probability)(random_);
}

absl::StatusOr<v1::SynchronizeResponse> StormCoordinator::Synchronize(
    const v1::SynchronizeRequest& request, absl::Duration) {
  constexpr double kLost = 0.03;
  constexpr double kCalledOff = 0.004;
  if (Chance(kLost)) {
    ++num_lost_calls_;
    return absl::UnavailableError("the call is lost");
  }
  if (request.has_completed()) Take(request.completed());
  const bool is_sick = !request.worker().quarantine_reason().empty();
  num_quarantined_ += is_sick ? 1 : 0;
  v1::SynchronizeResponse response;
  const absl::Time next = clock_.Now() + kInterval;
  response.mutable_next_synchronization_time()->set_seconds(absl::ToUnixSeconds(next));
  const bool is_executing = request.has_executing();
  if (trial_ == options_.trials.size()) {
    stop_.request_stop();
  } else if (is_executing && Chance(kCalledOff)) {
    // Granted again, under another name, with the next call.
    ++num_called_off_;
    lease_.reset();
  } else if (is_executing && lease_ && lease_->id() == request.executing().lease_id()) {
    *response.mutable_lease() = *lease_;
  } else if (request.has_idle() && !is_sick) {
    Grant(response);
  }
  if (Chance(kLost)) {
    ++num_lost_calls_;
    return absl::UnavailableError("the answer is lost");
  }
  return response;
}

// The first result of the lease that counts is final.
void StormCoordinator::Take(const v1::SynchronizeRequest::Completed& completed) {
  if (!lease_ || lease_->id() != completed.lease_id()) return;
  lease_.reset();
  const std::string outcome = Outcome(completed.result());
  if (outcome == "lost" && ++attempt_ < kMaxAttempts) return;
  outcomes_[trial_].push_back(outcome);
  ++trial_;
  attempt_ = 0;
}

// The same lease again if the answer that granted it was lost.
void StormCoordinator::Grant(v1::SynchronizeResponse& response) {
  if (!lease_) {
    const Trial& trial = options_.trials[trial_];
    lease_.emplace();
    lease_->set_id(absl::StrCat("lease-", ++num_granted_));
    *lease_->mutable_evaluation() = trial.request;
    if (attempt_ == 0) {
      Plan(options_.reference_folder, trial.reference_fault);
      Plan(options_.runner_folder, trial.canary_faults);
    }
  }
  *response.mutable_lease() = *lease_;
}

}  // namespace mtmc::fault
