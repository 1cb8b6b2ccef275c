// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "mtmc/v1/candidate.pb.h"
#include "mtmc/v1/policy.pb.h"

namespace mtmc::search {

// A drawn action, with the record of how it was drawn.
struct MacroStep {
  v1::Action action;
  v1::Decision decision;
};

// A seed of its own for one use of the job's seed, the same after a restart.
int64_t ForkSeed(int64_t seed, std::string_view use, int64_t index);

// Whether an answer of the policy service can be used: one finite probability
// per action, together 1 within 1e-3, and the chosen one is possible.
// INTERNAL with what is wrong.
absl::Status CheckAnswer(const v1::ChooseActionRequest& request,
                         const v1::ChooseActionResponse& response);

// The step that a usable answer means.
MacroStep FromAnswer(const v1::ChooseActionRequest& request,
                     const v1::ChooseActionResponse& response);

// Draws from given probabilities, for strategies that decide themselves.
MacroStep DrawStep(const v1::ChooseActionRequest& request, const std::string& policy,
                   const std::vector<double>& probabilities);

// Decides with the rules in this process, when the policy service did not.
MacroStep FallBack(const v1::ChooseActionRequest& request);

}  // namespace mtmc::search
