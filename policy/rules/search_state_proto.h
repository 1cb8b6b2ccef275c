// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "policy/rules/interface.h"

namespace mtmc::v1 {
class Action;
class ChooseActionRequest;
class ChooseActionResponse;
class SearchState;
}  // namespace mtmc::v1

namespace mtmc::policy {

// Wire form to domain values and back; the only place of this component that
// knows the messages.

// INVALID_ARGUMENT when the action has no type.
absl::StatusOr<Action> FromProto(const v1::Action& action);

// Never fails: what a peer left out is unknown, not wrong.
SearchState FromProto(const v1::SearchState& search_state);

// A complete query without a deadline. INVALID_ARGUMENT when there is no
// action, an action has no type, or the temperature is negative or not finite.
absl::StatusOr<Query> FromProto(const v1::ChooseActionRequest& request);

// Fills everything of the answer but `policy` and `model_digest`: draws with
// `seed` from the distribution.
v1::ChooseActionResponse ToProto(const Distribution& distribution, int64_t seed);

}  // namespace mtmc::policy
