// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "mtmc/v1/action.pb.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/micro_coding.pb.h"
#include "server/search/allowance.h"
#include "server/search/await.h"
#include "server/search/backends.h"
#include "server/search/journal.h"
#include "server/search/search.h"
#include "server/search/trial_trace.h"

namespace mtmc::search {

// The micro step for one job: gives every request the job's context and the trace of its
// trial, and waits for as long as the gateway is down or asks to be left alone, with a notice
// in the event log when that begins and when it is over. A gateway that is there and lets calls end
// by their deadline is asked `max_late_calls` times: what it hangs on may be the request.
//
// Every call returns what the gateway answered, or CANCELLED if the interruption
// came first; RESOURCE_EXHAUSTED with reason QUOTA_EXCEEDED when the project has no tokens
// left for a language model. Once the job is paused, a call that failed is not made again: it sets
// the interruption. A resource; called on the event loop. Private to this folder.
class PatientCoder {
 public:
  // All arguments outlive it, and what `tools` name.
  PatientCoder(const Search::Options& options, const SearchTools& tools, Journal& journal,
               TrialTrace& trace, Allowance& allowance, Interruption& interruption)
      : options_(options),
        tools_(tools),
        journal_(journal),
        allowance_(allowance),
        trace_(trace),
        interruption_(interruption) {}

  boost::asio::awaitable<absl::StatusOr<v1::CreateProgramResponse>> CreateProgram();

  // The actions that are legal for `program`, which `candidate` has.
  boost::asio::awaitable<absl::StatusOr<v1::ListActionsResponse>> ListActions(
      const v1::Candidate& candidate, const v1::Program& program);

  boost::asio::awaitable<absl::StatusOr<v1::ApplyActionResponse>> ApplyAction(
      const v1::Candidate& candidate, const v1::Program& program, const v1::Action& action);

  // A program is being written, and perhaps paid for, at this moment.
  bool is_writing() const { return is_writing_; }

 private:
  template <class Response>
  boost::asio::awaitable<absl::StatusOr<Response>> Write(std::function<void(Done<Response>)> start);
  template <class Response>
  boost::asio::awaitable<absl::StatusOr<Response>> Call(std::function<void(Done<Response>)> start);

  void Settle(const absl::Status& status);
  boost::asio::awaitable<absl::Status> ReserveTokens();
  // With the job's context in it.
  template <class Request>
  Asked<Request> WithContext(std::unique_ptr<Request> request);
  v1::CodingContext Context() const;

  const Search::Options options_;
  const SearchTools tools_;
  Journal& journal_;
  Allowance& allowance_;
  TrialTrace& trace_;
  Interruption& interruption_;
  bool is_writing_ = false;
};

}  // namespace mtmc::search
