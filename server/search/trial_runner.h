// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/micro_coding.pb.h"
#include "server/search/search_run.h"

namespace mtmc::search {

// Brings the newest trial of one job to its end: code, evaluate, record. Each call
// takes one recorded step, so that a restart goes on where it stopped. Called on
// the event loop. Private to this folder.
class TrialRunner {
 public:
  // Texts for whoever watches the job, recorded with a step.
  using Notices = std::vector<std::string>;

  // The run is borrowed.
  explicit TrialRunner(SearchRun& run) : run_(run) {}

  // Records a new candidate with its decision: as a trial of the budget, or as a known
  // step, which is over at once. A program of the built-in coder is recorded with it.
  boost::asio::awaitable<absl::Status> Begin(v1::Candidate candidate, Notices notices);

  // Codes or evaluates the candidate, whichever of the two is left to do. Sets the
  // run's ending when no later trial would fare better.
  boost::asio::awaitable<absl::Status> Advance(v1::Candidate candidate);

  // Asks of a finished candidate all that winners are asked, and records what becomes of it.
  boost::asio::awaitable<absl::Status> Confirm(int trial);

 private:
  // What a candidate is asked.
  enum class Scope { kUsual, kEverything };

  boost::asio::awaitable<absl::Status> CodeStart(v1::Candidate candidate);
  boost::asio::awaitable<absl::Status> AdoptStart(v1::Candidate candidate);
  boost::asio::awaitable<absl::Status> CodeStep(v1::Candidate candidate);
  boost::asio::awaitable<absl::Status> RecordProgram(v1::Candidate candidate, v1::Program program);
  boost::asio::awaitable<absl::Status> StoreProgram(const v1::Program& program,
                                                    v1::Candidate& candidate);
  // Makes `use` the candidate's, with the texts of `exchange` as blobs.
  boost::asio::awaitable<absl::Status> KeepUse(v1::TokenUse use, const v1::Exchange& exchange,
                                               v1::Candidate& candidate);
  boost::asio::awaitable<absl::StatusOr<v1::Digest>> Store(const std::string& text);
  boost::asio::awaitable<absl::StatusOr<v1::Digest>> Put(std::string text);
  boost::asio::awaitable<absl::Status> Evaluate(v1::Candidate candidate);
  boost::asio::awaitable<absl::StatusOr<std::optional<v1::Evaluation>>> Judge(
      const v1::Candidate& candidate, Scope scope);
  boost::asio::awaitable<absl::StatusOr<v1::EvaluationRequest>> MakeRequest(
      const v1::Candidate& candidate, Scope scope);
  boost::asio::awaitable<absl::Status> RecordEvaluation(v1::Candidate candidate,
                                                        Notices notices = {});
  boost::asio::awaitable<absl::Status> RecordKnown(v1::Candidate candidate, int known,
                                                   Notices notices = {});

  absl::Status EndByQuota(const absl::Status& status);
  int64_t TokensLeft() const;
  void Settle(const v1::TokenUse& use);

  SearchRun& run_;
  // Why the built-in coder has no program for the newest trial, if Begin was told; a
  // restart asks again.
  std::optional<absl::StatusOr<v1::ApplyActionResponse>> answer_;
};

}  // namespace mtmc::search
