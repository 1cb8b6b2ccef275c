// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "server/gateway/micro_coder.h"

namespace mtmc::v1 {
class Action;
class CodingContext;
class CoderFailure;
class DeviceFacts;
class Evaluation;
class Exchange;
class Program;
class TokenUse;
}  // namespace mtmc::v1

namespace mtmc::gateway {

// The door between the wire and the coders.

// INVALID_ARGUMENT with reason CODING_CONTEXT_INVALID when the graph breaks a
// rule, the dialect is unset, or a number is negative. The deadline is left to
// the caller.
absl::StatusOr<CodingTask> FromProto(const v1::CodingContext& proto);

// INVALID_ARGUMENT with reason ACTION_INVALID for an unset type.
absl::StatusOr<CodingAction> FromProto(const v1::Action& proto);
CodedProgram FromProto(const v1::Program& proto);

// What an evaluation says to a coder; kNone for one that is empty.
Feedback FromProto(const v1::Evaluation& proto);

v1::Action ToProto(const CodingAction& action);
v1::Program ToProto(const CodedProgram& program);
v1::CoderFailure ToProto(const CoderFailure& failure);
// With the digests of what was said.
v1::TokenUse ToProto(const TokenUse& use, const std::optional<Exchange>& exchange);
v1::Exchange ToProto(const Exchange& exchange);

}  // namespace mtmc::gateway
