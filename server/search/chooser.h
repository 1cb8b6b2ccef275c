// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mtmc/v1/policy.pb.h"
#include "server/search/backends.h"
#include "server/search/macro_step.h"
#include "server/search/search_run.h"
#include "server/search/strategy.h"

namespace mtmc::search {

// The macro step of one job: what may be done, and what is done next. Records
// nothing; a decision is the caller's to record. Called on the event
// loop. Private to this folder.
class Chooser {
 public:
  // The run is borrowed.
  explicit Chooser(SearchRun& run) : run_(run) {}

  // The search state and its legal, untried actions. Sets the run's ending when
  // the coder cannot list them.
  boost::asio::awaitable<absl::StatusOr<Asked<v1::ChooseActionRequest>>> Question(
      const Selection& selection);

  // At first what earlier jobs learned, then the fastest mix of what was measured, if it promises
  // more than what is there; else the drawn action, with one on every other group. `notices` get
  // what is to be told.
  boost::asio::awaitable<MacroStep> Decide(int parent, const Asked<v1::ChooseActionRequest>& asked,
                                           std::vector<std::string>& notices);

 private:
  boost::asio::awaitable<MacroStep> Choose(const Asked<v1::ChooseActionRequest>& asked,
                                           std::vector<std::string>& notices);

  std::optional<v1::Action> RecallRecords(int parent);

  SearchRun& run_;
  bool is_policy_down_ = false;
};

}  // namespace mtmc::search
