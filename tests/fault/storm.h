// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "mtmc/v1/worker.pb.h"
#include "worker/daemon/coordinator_client.h"

namespace mtmc::fault {

// How an evaluation must end, in one word: `measured`, the failure's kind, or
// `lost` when every attempt ended as trouble of the worker.
std::string Outcome(const v1::LeaseResult& result);

// One candidate of the storm, with what its children are to do wrong.
struct Trial {
  v1::EvaluationRequest request;
  // Lines for the reference process and for the runner's canaries, done once.
  std::string reference_fault;
  std::string canary_faults;
  std::string expected;
};

// A coordinator that hands out trials as leases, over a connection that loses
// calls and answers, and that calls work off for no reason. What a worker could
// not do is granted again, twice. Requests a stop when all trials are done.
class StormCoordinator final : public worker::CoordinatorClient {
 public:
  struct Options {
    std::vector<Trial> trials;
    // Folders in which the children look for their faults.
    std::string reference_folder;
    std::string runner_folder;
    uint32_t seed = 1;
  };

  // Borrows the clock, which must outlive it.
  StormCoordinator(Options options, base::Clock& clock);

  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      absl::Duration timeout) override;

  bool AwaitConnection(absl::Time) override { return true; }

  void Interrupt() override {}

  absl::StatusOr<std::string> Download(const v1::Digest&) override { return std::string(); }

  std::stop_token stop() { return stop_.get_token(); }

  // Outcomes by trial; more than one if a trial was reported twice.
  const std::map<size_t, std::vector<std::string>>& outcomes() const { return outcomes_; }

  int num_lost_calls() const { return num_lost_calls_; }

  int num_called_off() const { return num_called_off_; }

  int num_quarantined() const { return num_quarantined_; }

 private:
  bool Chance(double probability);
  void Take(const v1::SynchronizeRequest::Completed& completed);
  void Grant(v1::SynchronizeResponse& response);

  const Options options_;
  base::Clock& clock_;
  std::mt19937 random_;
  std::stop_source stop_;
  std::map<size_t, std::vector<std::string>> outcomes_;
  // The lease in hand and its trial.
  std::optional<v1::Lease> lease_;
  size_t trial_ = 0;
  int attempt_ = 0;
  int num_granted_ = 0;
  int num_lost_calls_ = 0;
  int num_called_off_ = 0;
  int num_quarantined_ = 0;
};

}  // namespace mtmc::fault
