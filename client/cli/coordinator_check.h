// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace mtmc::client {

// A line of `mtmc doctor` about the way to a coordinator. A value.
struct CoordinatorCheck {
  bool is_present = false;
  // What was found.
  std::string detail;
  // What to do; empty when present.
  std::string remedy;
};

// What `answer`, the end of a call of the coordinator at `endpoint`, says of the way there:
// its address, certificate and token. An answer that a role is missing is a good one, for
// the token of a worker has another role than the one that lists workers.
CoordinatorCheck JudgeAnswer(const std::string& endpoint, const absl::Status& answer);

}  // namespace mtmc::client
